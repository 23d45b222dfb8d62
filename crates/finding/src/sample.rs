//! Values for samples of findings.

/// A value that a field could have.
pub trait Sample {
    /// One for a field of this name.
    fn sample(field: &str) -> Self;
}

impl Sample for String {
    fn sample(field: &str) -> Self {
        match field {
            "pool" => "tank",
            "volume" => "tank/vm1",
            "host" => "esx1",
            "drive" | "path" | "leg" | "old" => "/dev/nvme0n1",
            "spare" | "new" | "other" => "/dev/nvme1n1",
            "address" => "192.0.2.1:4420",
            "array" | "mirror" => "mirror-0",
            "head" => "a",
            "file" => "hosts",
            "uuid" => "0b8f5b1e-3f0a-4c1d-9a57-5d9d5f1f4a10",
            "name" => "vm1",
            _ => return format!("<{field}>"),
        }
        .into()
    }
}

macro_rules! numbers {
    ($($type:ty),+) => {
        $( impl Sample for $type {
            fn sample(field: &str) -> Self {
                // A size is one that a person would write.
                if field.contains("bytes") { <$type>::try_from(8u64 << 30).unwrap_or(64) } else { 2 as $type }
            }
        } )+
    };
}
numbers!(u8, u16, u32, u64, usize, i32, i64);

impl Sample for char {
    fn sample(_: &str) -> Self {
        '2'
    }
}

impl Sample for bool {
    fn sample(_: &str) -> Self {
        true
    }
}

impl Sample for base::ConnectionFault {
    fn sample(_: &str) -> Self {
        base::IscsiFault::SecretWrong.into()
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(field: &str) -> Self {
        Some(T::sample(field))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(field: &str) -> Self {
        vec![T::sample(field.strip_suffix('s').unwrap_or(field))]
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(field: &str) -> Self {
        Box::new(T::sample(field))
    }
}

impl Sample for crate::ErrorKind {
    fn sample(_: &str) -> Self {
        Self::Internal
    }
}

impl Sample for crate::Weight {
    fn sample(_: &str) -> Self {
        Self::Note
    }
}

impl Sample for base::machine::StateFault {
    fn sample(_: &str) -> Self {
        Self::ReadOnly { path: "/var/lib/millrace".into() }
    }
}

/// What a finding contains contains no other: findings contain findings of their own kind.
macro_rules! inner {
    ($($union:ident: $sample:expr),+ $(,)?) => {
        $( impl Sample for crate::$union {
            fn sample(_: &str) -> Self {
                $sample.into()
            }
        } )+
    };
}
inner! {
    Why: crate::PoolRefusal::PoolNameTaken { pool: "tank".into() },
    Cause: crate::LegCause::DriveFailed { fault: crate::DriveFault::Gone, helps: None },
    Event: crate::PoolEvent::PoolCreated,
    Notice: crate::PoolNotice::FileLargerThanBelow {
        drive: "/srv/a.img".into(),
        free_bytes: 4 << 30,
        bytes: 8 << 30,
    },
}

impl Sample for base::DriveOpenFault {
    fn sample(_: &str) -> Self {
        Self::Locked
    }
}

impl Sample for base::NoFence {
    fn sample(_: &str) -> Self {
        Self::Loop
    }
}

impl Sample for base::view::Immovable {
    fn sample(_: &str) -> Self {
        Self::Local
    }
}
