//! `/metrics`: OpenMetrics for whoever takes it, Prometheus' text format 0.0.4 for everybody else. docs/metrics.md lists the
//! families, and is made from these files by a test.

mod head;
mod hosts;
mod storage;
#[cfg(test)]
mod tests;

use super::{Api, Asked, Refused, odd_reply};
use api::{BOUNDS_NS, Status, Times};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use core::fmt;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::borrow::Cow;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "head",
    responses((status = 200, description = "Text format 0.0.4; OpenMetrics if the request accepts it", body = String, content_type = "text/plain"),
              (status = "default", description = "Why not", body = api::ErrorBody)))]
pub async fn metrics(
    State(api): State<Api>,
    asked: Option<Extension<Asked>>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Refused> {
    let status = api.status().await?;
    let asked = asked.map(|Extension(Asked(head))| head.letter().to_string());
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok());
    let format = Format::of(accepts);
    let text = encode(status, asked, format).map_err(|fmt::Error| odd_reply())?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], text))
}

/// How metrics are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// What a request accepts, by its headers.
    fn of<'a>(mut accepts: impl Iterator<Item = &'a str>) -> Self {
        let open = accepts.any(|v| v.contains("application/openmetrics-text"));
        if open { Self::OpenMetrics } else { Self::Prometheus }
    }
    fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => OPENMETRICS,
        }
    }
}

/// Samples of the head that says this, in front of which the other one, `asked`, may have been asked.
fn encode(status: Status, asked: Option<String>, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("millrace");
    registry.register_collector(Box::new(Figures { status, asked }));
    let mut out = String::new();
    match format {
        Format::Prometheus => prometheus_text::encode(&mut out, &registry)?,
        Format::OpenMetrics => text::encode(&mut out, &registry)?,
    }
    Ok(out)
}

/// What is told.
#[derive(Debug)]
struct Figures {
    status: Status,
    asked: Option<String>,
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out(encoder);
        head::head(&self.status, self.asked.as_deref(), &mut out)?;
        head::shards(&self.status, &mut out)?;
        storage::pools(&self.status, &mut out)?;
        storage::volumes(&self.status, &mut out)?;
        storage::drives(&self.status, &mut out)?;
        hosts::hosts(&self.status, &mut out)
    }
}

/// Labels of a sample.
type Labels<'a> = Vec<(&'static str, Cow<'a, str>)>;

fn label<'a>(name: &'static str, value: impl Into<Cow<'a, str>>) -> (&'static str, Cow<'a, str>) {
    (name, value.into())
}

/// The label of a sample that belongs to one head, if there are two, and others behind it.
fn of_head<'a, const N: usize>(
    head: &'a Option<String>,
    rest: [(&'static str, Cow<'a, str>); N],
) -> Labels<'a> {
    head.as_ref().map(|head| label("head", head.as_str())).into_iter().chain(rest).collect()
}

/// Where families of samples go. Names are whole, but for the prefix; a family without samples is left out.
struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn gauge<'l, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        self.family((name, help, MetricType::Gauge), samples, |mut out, value| out.encode_gauge(&value))
    }
    /// The name ends in `_total`.
    fn counter<'l, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        let stem = name.strip_suffix("_total").ok_or(fmt::Error)?;
        self.family((stem, help, MetricType::Counter), samples, |mut out, value| {
            out.encode_counter::<NoLabelSet, V, u64>(&value, None)
        })
    }
    /// Of times, in seconds.
    fn histogram<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, &'l Times)>,
    ) -> fmt::Result {
        let bounds = BOUNDS_NS.map(seconds).into_iter().chain([f64::INFINITY]);
        let bounds: Vec<f64> = bounds.collect();
        self.family((name, help, MetricType::Histogram), samples, |mut out, times| {
            let buckets: Vec<(f64, u64)> = bounds.iter().copied().zip(times.buckets).collect();
            out.encode_histogram::<NoLabelSet>(seconds(times.total_ns), times.total_timed, &buckets, None)
        })
    }
    /// One gauge for each of some states: 1 for the one in force.
    fn states<'l, S: Copy + PartialEq>(
        &mut self,
        name: &str,
        help: &str,
        words: &[(&'static str, S)],
        samples: impl IntoIterator<Item = (Labels<'l>, Option<S>)>,
    ) -> fmt::Result {
        let all = samples.into_iter().flat_map(|(labels, is)| {
            words.iter().map(move |(word, state)| {
                let labels = labels.iter().cloned().chain([label("state", *word)]).collect();
                (labels, u64::from(is == Some(*state)))
            })
        });
        self.gauge(name, help, all)
    }
    fn family<'l, V>(
        &mut self,
        (name, help, kind): (&str, &str, MetricType),
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
        write: impl Fn(MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let (stem, unit) = unit_of(name);
        let mut family = self.0.encode_descriptor(stem, help, unit.as_ref(), kind)?;
        for (labels, value) in samples {
            write(family.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

/// The unit that a name ends in.
fn unit_of(name: &str) -> (&str, Option<Unit>) {
    let units = [Unit::Seconds, Unit::Bytes, Unit::Celsius];
    let found = units
        .into_iter()
        .find_map(|unit| Some((name.strip_suffix(unit.as_str())?.strip_suffix('_')?, Some(unit))));
    found.unwrap_or((name, None))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// All states of what may be in better or worse health.
fn healths() -> [(&'static str, api::State); 5] {
    use api::State as S;
    [S::Optimal, S::Rebuilding, S::Degraded, S::Offline, S::Failed].map(|s| (s.word(), s))
}
