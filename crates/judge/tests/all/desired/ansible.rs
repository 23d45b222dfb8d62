//! The Ansible role of `packaging/ansible`, as an operator's playbook uses it.

use super::{DESIRED, head, state, write};
use judge::binary;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether the test must be left out because Ansible is not installed. In CI that is a failure.
fn without_ansible() -> bool {
    if Command::new("ansible-playbook").arg("--version").output().is_ok_and(|done| done.status.success()) {
        return false;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "the Ansible role must be tested in CI: apt install ansible-core"
    );
    println!("SKIPPED the Ansible role: ansible-playbook is not installed");
    true
}

#[test]
fn the_ansible_role_changes_what_differs_and_nothing_else() {
    if lab::skipped("the Ansible role") || without_ansible() {
        return;
    }
    let head = head("ansible");
    let dir = head.dir.display();
    let text =
        fs::read_to_string(write(&head, &DESIRED.replace("\"secret\"", "\"secrets/web1\""))).expect("text");
    let roles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/ansible/roles");
    let play = serde_json::json!([{
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": false,
        "roles": [{ "role": "millrace", "vars": {
            "millrace_desired": text,
            "millrace_desired_file": format!("{dir}/kept/desired.toml"),
            "millrace_secrets": { "web1": "a secret of web1" },
            "millrace_program": binary(),
            "millrace_socket": format!("{dir}/api"),
        }}],
    }]);
    // YAML holds JSON.
    fs::write(head.dir.join("play.yml"), play.to_string()).expect("a playbook");
    let run = |options: &[&str]| -> (u32, String) {
        let mut command = Command::new("ansible-playbook");
        command.args(["-v", "-i", "localhost,"]).args(options).arg(head.dir.join("play.yml"));
        command.env("ANSIBLE_ROLES_PATH", &roles).env("ANSIBLE_LOCAL_TEMP", head.dir.join("tmp"));
        command.env("ANSIBLE_REMOTE_TEMP", head.dir.join("tmp")).env("ANSIBLE_NOCOLOR", "1");
        command.env("LC_ALL", "C.UTF-8");
        let done = command.output().expect("ansible-playbook runs");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
        let changed = said.rsplit("changed=").next().and_then(|rest| rest.split_whitespace().next());
        (changed.and_then(|n| n.parse().ok()).expect("a number of changes"), said)
    };
    let before = state(&head);
    run(&["--check"]);
    assert_eq!(state(&head), before, "check mode has changed something");
    let (changed, said) = run(&[]);
    assert!(changed > 0 && said.contains("Done: 6 added"), "{said}");
    let after = state(&head);
    let (changed, said) = run(&[]);
    assert_eq!((changed, state(&head)), (0, after), "{said}");
    head.cli("volume set tank/vm1 --iops-max none");
    let (changed, said) = run(&["--check"]);
    assert!(changed == 1 && said.contains("iops_max none to 5000"), "{said}");
}
