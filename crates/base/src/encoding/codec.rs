//! Little-endian records in bytes, for everything that we write to drives and files ourselves; bytes as hexadecimal digits.

use core::fmt::Write;

/// The bytes end too early, or say something impossible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// Appends numbers and texts to a growing record.
#[derive(Default, Debug)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// One byte.
    pub fn u8(&mut self, v: u8) -> &mut Self {
        self.0.push(v);
        self
    }
    /// Two bytes.
    pub fn u16(&mut self, v: u16) -> &mut Self {
        self.bytes(&v.to_le_bytes())
    }
    /// Four bytes.
    pub fn u32(&mut self, v: u32) -> &mut Self {
        self.bytes(&v.to_le_bytes())
    }
    /// Eight bytes.
    pub fn u64(&mut self, v: u64) -> &mut Self {
        self.bytes(&v.to_le_bytes())
    }
    /// Bytes as they are.
    pub fn bytes(&mut self, v: &[u8]) -> &mut Self {
        self.0.extend_from_slice(v);
        self
    }
    /// A text: u16 length, UTF-8. Panics beyond 65535 bytes.
    pub fn text(&mut self, v: &str) -> &mut Self {
        self.u16(u16::try_from(v.len()).expect("a text of a record is short")).bytes(v.as_bytes())
    }
}

/// Reads what `Writer` wrote; every read is checked.
#[derive(Clone, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        if n > self.0.len() {
            return Err(Malformed);
        }
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        Ok(head)
    }
    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.bytes(N)?.try_into().expect("length is N"))
    }
    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }
    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// A text.
    pub fn text(&mut self) -> Result<String, Malformed> {
        let n = self.u16()?;
        String::from_utf8(self.bytes(usize::from(n))?.to_vec()).map_err(|_| Malformed)
    }
}

/// Two hexadecimal digits for each byte, in small letters.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(out, "{byte:02x}").expect("writing to a string");
    }
    out
}

/// The bytes that `hex` wrote; letters may be capital. None for anything but pairs of digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let digits = digits.filter(|d| d.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|p| p[0] << 4 | p[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_as_digits_and_what_is_no_pair_of_digits_is_refused() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!((hex(&[0, 0xa5]), unhex("0Aff")), ("00a5".into(), Some(vec![10, 255])));
        for text in ["0", "123", "0x", "+1", "g0", "1 2 ", "é"] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }
}
