//! Several things at once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// A future in a box.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Waits for all, and gives their results in order.
pub async fn all<T>(futures: Vec<Boxed<'_, T>>) -> Vec<T> {
    let mut futures: Vec<Option<Boxed<'_, T>>> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(move |cx| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if let Some(Poll::Ready(value)) = future.as_mut().map(|f| f.as_mut().poll(cx)) {
                (*future, *result) = (None, Some(value));
            }
        }
        if results.iter().all(Option::is_some) {
            Poll::Ready(results.iter_mut().map(|r| r.take().expect("all are there")).collect())
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Waits for two that are not alike.
pub async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut a, mut b) = (None, None);
    poll_fn(move |cx| {
        if a.is_none()
            && let Poll::Ready(value) = one.as_mut().poll(cx)
        {
            a = Some(value);
        }
        if b.is_none()
            && let Poll::Ready(value) = other.as_mut().poll(cx)
        {
            b = Some(value);
        }
        match (a.take(), b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (x, y) => {
                (a, b) = (x, y);
                Poll::Pending
            }
        }
    })
    .await
}
