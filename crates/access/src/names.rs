//! Names that hosts have in the protocols.

use finding::{HostRefusal, IqnFault, NqnFault};

/// Longest NQN (NVMe Base 4.5) and iSCSI name (RFC 7143 4.2.7.2), bytes.
const NAME_BYTES_MAX: usize = 223;

/// An NVMe qualified name of a host: `nqn.`, a month, a reversed domain, and what its owner likes.
pub fn check_nqn(name: &str) -> Result<(), HostRefusal> {
    let no = |why| Err(HostRefusal::NqnInvalid { name: shortened(name), why });
    if name.len() > NAME_BYTES_MAX {
        return no(NqnFault::TooLong { bytes_max: NAME_BYTES_MAX });
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return no(NqnFault::Blank);
    }
    let Some(rest) = name.strip_prefix("nqn.") else { return no(NqnFault::Prefix) };
    if !begins_with_month(rest) {
        return no(NqnFault::Month);
    }
    // NVMe Base 4.5: the name of the well-known discovery subsystem is nobody's.
    if name == "nqn.2014-08.org.nvmexpress.discovery" {
        return no(NqnFault::Discovery);
    }
    match name.strip_prefix("nqn.2014-08.org.nvmexpress:uuid:") {
        Some(uuid) if uuid.len() != 36 || uuid.parse::<base::Uuid>().is_err() => no(NqnFault::NoUuid),
        Some(_) | None => Ok(()),
    }
}

/// An iSCSI name in its normal form, in which names are compared: lower case (RFC 3722 5).
pub fn normal_iqn(name: &str) -> Result<String, HostRefusal> {
    let no = |why| Err(HostRefusal::IqnInvalid { name: shortened(name), why });
    if name.len() > NAME_BYTES_MAX {
        return no(IqnFault::TooLong { bytes_max: NAME_BYTES_MAX });
    }
    // RFC 3722 6.2 leaves letters, digits, '-', '.' and ':' of ASCII. Hosts that call themselves by their
    // machine's name send '_' too, and refusing it would help nobody.
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b':' | b'_')) {
        return no(IqnFault::Character);
    }
    let name = name.to_ascii_lowercase();
    // RFC 3721 1.1 (iqn, eui) and RFC 3980 (naa).
    if let Some(rest) = name.strip_prefix("iqn.") {
        if !begins_with_month(rest) {
            return no(IqnFault::Month);
        }
    } else if let Some(hex) = name.strip_prefix("eui.") {
        if hex.len() != 16 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return no(IqnFault::Eui);
        }
    } else if let Some(hex) = name.strip_prefix("naa.") {
        if !matches!(hex.len(), 16 | 32) || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return no(IqnFault::Naa);
        }
    } else {
        return no(IqnFault::Prefix);
    }
    Ok(name)
}

/// `yyyy-mm.` and at least one more character.
fn begins_with_month(rest: &str) -> bool {
    let b = rest.as_bytes();
    b.len() > 8
        && b[..4].iter().all(u8::is_ascii_digit)
        && b[4] == b'-'
        && matches!(&b[5..7], [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2'])
        && b[7] == b'.'
}

fn shortened(name: &str) -> String {
    name.chars().take(240).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nqns_are_checked() {
        for good in [
            "nqn.2014-08.org.nvmexpress:uuid:36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2",
            "nqn.2019-12.com.example:disk.1",
            "nqn.2019-12.c",
        ] {
            assert_eq!(check_nqn(good), Ok(()));
        }
        for bad in [
            "",
            "nqn.",
            "iqn.2019-12.com.example",
            "NQN.2019-12.com.example",
            "nqn.2019-13.com.example",
            "nqn.2019-12.",
            "nqn.2019-12.com example",
            "nqn.2019-12.com.example\0",
            "nqn.2014-08.org.nvmexpress.discovery",
            "nqn.2014-08.org.nvmexpress:uuid:nonsense",
            &format!("nqn.2019-12.com.{}", "x".repeat(224)),
        ] {
            assert!(matches!(check_nqn(bad), Err(HostRefusal::NqnInvalid { .. })), "{bad}");
        }
    }

    #[test]
    fn iscsi_names_are_brought_to_their_normal_form() {
        assert_eq!(normal_iqn("IQN.1998-01.com.VMware:ESX1").as_deref(), Ok("iqn.1998-01.com.vmware:esx1"));
        assert_eq!(normal_iqn("eui.02004567A425678D").as_deref(), Ok("eui.02004567a425678d"));
        assert_eq!(normal_iqn("naa.52004567BA64678D").as_deref(), Ok("naa.52004567ba64678d"));
        for bad in [
            "",
            "iqn.",
            "iqn.1998.com",
            "iqn.1998-01.com/x",
            "iqn.1998-01.com.ü",
            "eui.123",
            "naa.xyz",
            "esx1",
        ] {
            assert!(matches!(normal_iqn(bad), Err(HostRefusal::IqnInvalid { .. })), "{bad}");
        }
        assert!(normal_iqn(&format!("iqn.1998-01.{}", "x".repeat(224))).is_err());
    }
}
