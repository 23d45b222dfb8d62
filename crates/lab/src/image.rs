//! The image that guests boot from, made of Debian's packages.
//!
//! apt resolves the packages against an empty system, with its state in our folder: the machine's own
//! packages are not touched. They are unpacked into a read-only ext4 image; a guest lays a memory file
//! system over it, so that every boot is fresh.

use crate::cpio;
use crate::host::{as_root, folder, output};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A kernel with the tools of the Debian release that it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kernel {
    /// Linux 6.1 of Debian 12: the oldest kernel that the product supports.
    #[default]
    V6_1,
    /// Linux 6.12 of Debian 13.
    V6_12,
}

impl Kernel {
    fn suite(self) -> &'static str {
        match self {
            Kernel::V6_1 => "bookworm",
            Kernel::V6_12 => "trixie",
        }
    }

    fn folder(self) -> PathBuf {
        folder().join("images").join(self.suite())
    }
}

const PACKAGES: &[&str] = &[
    "linux-image-amd64",
    "busybox-static",
    "base-passwd",
    "bash",
    "coreutils",
    "util-linux",
    "mount",
    "grep",
    "sed",
    "findutils",
    "procps",
    "kmod",
    "udev",
    "iproute2",
    "e2fsprogs",
    "xfsprogs",
    "nvme-cli",
    "open-iscsi",
    "multipath-tools",
    "sg3-utils",
    "fio",
];

/// Which modules of the kernel are kept, below `kernel/`: folders or files without what follows the
/// first dot.
const MODULES: &[&str] = &[
    "arch",
    "block",
    "crypto",
    "lib",
    "mm",
    "fs/configfs",
    "fs/ext4",
    "fs/jbd2",
    "fs/mbcache",
    "fs/overlayfs",
    "fs/xfs",
    "net/core",
    "net/sched",
    "net/packet",
    "drivers/block",
    "drivers/char/hw_random",
    "drivers/char/virtio_console",
    "drivers/crypto",
    "drivers/dax",
    "drivers/dca",
    "drivers/infiniband/core",
    "drivers/md",
    "drivers/net/net_failover",
    "drivers/net/veth",
    "drivers/net/virtio_net",
    "drivers/nvme",
    "drivers/scsi",
    "drivers/target",
    "drivers/virtio",
    "net/802",
    "net/ipv4",
    "net/ipv6",
];

/// What the first stage loads before there is a root file system.
const STAGE1_MODULES: &[&str] = &["virtio_pci", "virtio_blk", "crc32c_intel", "ext4", "overlay"];

const AGENT: &str = include_str!("../guest/agent.c");
const STAGE1: &str = include_str!("../guest/stage1");
const STAGE2: &str = include_str!("../guest/stage2");

/// Tells images of different recipes apart.
fn recipe(kernel: Kernel) -> String {
    let text = format!("{kernel:?}{PACKAGES:?}{MODULES:?}{STAGE1_MODULES:?}{AGENT}{STAGE1}{STAGE2}");
    format!("{:016x}", crate::vm::fnv(text.as_bytes()))
}

/// The image's folder, if it is there and of today's recipe.
pub(crate) fn image(kernel: Kernel) -> Option<PathBuf> {
    let dir = kernel.folder().join(recipe(kernel));
    dir.join("root.img").is_file().then_some(dir)
}

/// Builds the guest image unless it is there (about a minute, 200 MB of packages, once). Several
/// processes may ask at once: one builds, the others wait. Returns the image's folder.
pub fn setup(kernel: Kernel) -> Result<PathBuf> {
    if let Some(dir) = image(kernel) {
        return Ok(dir);
    }
    let parent = kernel.folder();
    fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let lock = File::create(parent.join("lock"))?;
    lock.lock()?;
    if let Some(dir) = image(kernel) {
        return Ok(dir);
    }
    let began = Instant::now();
    // Images of older recipes go: no guest can be starting from them under our lock, and one that
    // runs keeps its files open.
    for old in fs::read_dir(&parent)?.flatten().filter(|e| e.path().is_dir()) {
        output(as_root("rm").arg("-rf").arg(old.path()))?;
    }
    let new = parent.join("new");
    fs::create_dir(&new)?;
    let packages = download(kernel.suite())?;
    build(&packages, &new)?;
    let dir = parent.join(recipe(kernel));
    fs::rename(&new, &dir)?;
    fs::remove_dir_all(folder().join("apt").join(kernel.suite()).join("archives")).ok();
    say(&format!("image ready after {} s: {}", began.elapsed().as_secs(), dir.display()));
    Ok(dir)
}

fn say(text: &str) {
    // The test runner captures what a test prints; who waits for the first image shall see this.
    writeln!(std::io::stderr(), "lab: {text}").ok();
}

/// The addresses of Debian's archives that apt uses on this machine, by what follows the release's
/// name: "" and "-security".
fn mirrors() -> BTreeMap<String, String> {
    let mut found = BTreeMap::from([
        (String::new(), "http://deb.debian.org/debian".to_owned()),
        ("-security".to_owned(), "http://deb.debian.org/debian-security".to_owned()),
    ]);
    let format = "$(ORIGIN)|$(CODENAME)|$(REPO_URI)";
    let targets =
        output(Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]));
    for line in targets.unwrap_or_default().lines() {
        let mut fields = line.split('|');
        if let (Some("Debian"), Some(name), Some(uri)) = (fields.next(), fields.next(), fields.next()) {
            match name.split_once('-') {
                None => found.insert(String::new(), uri.to_owned()),
                Some((_, "security")) => found.insert("-security".into(), uri.to_owned()),
                Some(_) => None,
            };
        }
    }
    found
}

/// More packages of the kernel's Debian release, without what they need: unpacked, as a tar archive to be
/// laid over a guest's root. Fetched once.
pub fn packages(kernel: Kernel, names: &[&str]) -> Result<PathBuf> {
    let parent = kernel.folder();
    fs::create_dir_all(&parent)?;
    let lock = File::create(parent.join("lock-packages"))?;
    lock.lock()?;
    let name = format!("packages-{:016x}", crate::vm::fnv(names.join(" ").as_bytes()));
    let archive = parent.join(format!("{name}.tgz"));
    if archive.is_file() {
        return Ok(archive);
    }
    let get = apt(kernel.suite())?;
    output(&mut get(&["update"]))?;
    let work = folder().join("apt").join(&name);
    fs::remove_dir_all(&work).ok();
    fs::create_dir_all(work.join("root"))?;
    say(&format!("downloading {} more packages", names.len()));
    output(get(&["download", "-qq"]).args(names).current_dir(&work))?;
    let script = r#"set -e -o pipefail; cd "$R"
        for deb in *.deb; do
            dpkg-deb --fsys-tarfile $deb | tar -x -C root --keep-directory-symlink --no-same-owner \
                --exclude=./usr/share/{doc,man,locale,info}
        done
        tar -C root -czf new.tgz ."#;
    output(as_root("bash").args(["-c", script]).env("R", &work).env("PATH", PATH))?;
    fs::rename(work.join("new.tgz"), &archive)?;
    fs::remove_dir_all(&work).ok();
    Ok(archive)
}

/// Makes apt-get commands for a Debian release, with a state of their own.
fn apt(suite: &str) -> Result<impl Fn(&[&str]) -> Command> {
    let apt = folder().join("apt").join(suite);
    for sub in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(apt.join(sub))?;
    }
    fs::write(apt.join("status"), "")?;
    let signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
    let sources: String =
        mirrors().iter().map(|(suffix, uri)| format!("deb {signed} {uri} {suite}{suffix} main\n")).collect();
    fs::write(apt.join("sources.list"), sources)?;
    let at = apt.display();
    fs::write(
        apt.join("apt.conf"),
        format!(
            r#"Dir::Etc::sourcelist "{at}/sources.list"; Dir::Etc::sourceparts "-";
               Dir::State::status "{at}/status"; Dir::State::lists "{at}/lists";
               Dir::Cache "{at}"; Dir::Cache::archives "{at}/archives";
               APT::Sandbox::User ""; APT::Install-Recommends "false"; APT::Architecture "amd64";
               APT::Keep-Downloaded-Packages "true"; Debug::NoLocking "true";"#
        ),
    )?;
    let conf = apt.join("apt.conf");
    Ok(move |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("APT_CONFIG", &conf).env("LC_ALL", "C").args(args);
        command
    })
}

/// Fetches the packages of a Debian release with all that they need.
fn download(suite: &str) -> Result<Vec<PathBuf>> {
    let archives = folder().join("apt").join(suite).join("archives");
    let get = apt(suite)?;
    say(&format!("reading the package lists of Debian {suite}"));
    output(&mut get(&["update"]))?;
    let listed = output(get(&["install", "-qq", "-y", "--print-uris"]).args(PACKAGES))?;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    say(&format!("downloading {} packages", names.len()));
    output(get(&["install", "-qq", "-y", "--download-only"]).args(PACKAGES))?;
    let mut files: Vec<PathBuf> = fs::read_dir(&archives)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("deb")))
        .collect();
    files.sort();
    if files.is_empty() {
        bail!("apt downloaded no packages into {}", archives.display());
    }
    Ok(files)
}

/// Makes `vmlinux`, `initrd` (first stage and agent) and `root.img` (tools and modules, read-only).
fn build(packages: &[PathBuf], out: &Path) -> Result<()> {
    let root = out.join("root");
    say(&format!("unpacking {} packages", packages.len()));
    // One shell for all of it, since a folder made by a user namespace's root is that root's.
    let list: Vec<String> = packages.iter().map(|p| format!("'{}'", p.display())).collect();
    let script = format!(
        r#"set -e -o pipefail
        umask 022; mkdir -p "$R"; cd "$R"
        mkdir -p usr/bin usr/sbin usr/lib usr/lib64 proc sys dev run tmp var mnt root etc
        for d in bin sbin lib lib64; do ln -s usr/$d $d; done
        ln -s /run var/run
        for deb in {}; do
            dpkg-deb --fsys-tarfile $deb | tar -x --keep-directory-symlink --no-same-owner \
                --exclude=./usr/share/{{doc,man,locale,info,lintian,bug,bash-completion,zsh}} \
                --exclude='*/__pycache__' --exclude='./usr/lib/python3*/test'
        done
        mv boot/vmlinuz-* ../vmlinuz; rm -rf boot
        cp usr/share/base-passwd/passwd.master etc/passwd; cp usr/share/base-passwd/group.master etc/group
        gid=900; for g in input sgx kvm render; do echo $g:x:$gid: >>etc/group; gid=$((gid + 1)); done
        ln -sf /proc/self/mounts etc/mtab; : >etc/fstab
        sed -i 's|^iscsid.startup.*|iscsid.startup = /sbin/iscsid|' etc/iscsi/iscsid.conf
        printf 'defaults {{\n\tuser_friendly_names no\n\tfind_multipaths no\n}}\n' >etc/multipath.conf
        ldconfig -r . 2>/dev/null || chroot . /sbin/ldconfig
        chroot . /bin/busybox --list | while read -r applet; do
            [ -e usr/bin/$applet ] || [ -L usr/bin/$applet ] || [ -e usr/sbin/$applet ] ||
                [ -L usr/sbin/$applet ] || ln -s busybox usr/bin/$applet
        done"#,
        list.join(" ")
    );
    let run = |script: &str| output(as_root("bash").args(["-c", script]).env("R", &root).env("PATH", PATH));
    run(&script)?;
    let version = name_of_only_entry(&root.join("usr/lib/modules"))?;
    let packed = fs::read(out.join("vmlinuz"))?;
    fs::write(out.join("vmlinux"), unpack_kernel(&packed)?)?;
    fs::remove_file(out.join("vmlinuz")).ok();

    say(&format!("choosing modules of {version}"));
    let kept: Vec<String> = MODULES.iter().map(|m| format!("-path './{m}/*' -o -path './{m}.ko*'")).collect();
    // Unpacked here, since that would be slow in the guest at each load.
    run(&format!(
        r#"set -e; cd "$R/usr/lib/modules/{version}/kernel"
        find . -type f ! '(' {} ')' -delete
        find . -name '*.ko.xz' -print0 | xargs -0 -r -P2 -n32 xz -d
        chroot "$R" /sbin/depmod {version}"#,
        kept.join(" -o ")
    ))?;

    say("making the initial and the root file system");
    fs::write(out.join("agent.c"), AGENT)?;
    output(
        Command::new("gcc")
            .args(["-O2", "-Wall", "-static", "-o"])
            .arg(out.join("agent"))
            .arg(out.join("agent.c")),
    )?;
    let order =
        run(&format!(r#"chroot "$R" /sbin/modprobe -S {version} -D -a {}"#, STAGE1_MODULES.join(" ")))?;
    let mut modules: Vec<&str> = Vec::new();
    for path in order.lines().filter_map(|line| line.strip_prefix("insmod ")) {
        let path = path.trim();
        if !modules.contains(&path) {
            modules.push(path);
        }
    }
    let file = |path: &Path| fs::read(path).with_context(|| path.display().to_string());
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut entries: Vec<cpio::Entry> =
        ["bin", "dev", "modules", "lower", "rw", "new"].iter().map(|d| ((*d).into(), None)).collect();
    entries.push(("bin/busybox".into(), Some(file(&root.join("usr/bin/busybox"))?)));
    entries.push(("init".into(), Some(STAGE1.into())));
    entries.push(("stage2".into(), Some(STAGE2.into())));
    entries.push(("agent".into(), Some(file(&out.join("agent"))?)));
    let names: String = modules.iter().map(|m| name(m) + "\n").collect();
    entries.push(("modules/order".into(), Some(names.into_bytes())));
    for module in modules {
        entries.push((format!("modules/{}", name(module)), Some(file(&root.join(&module[1..]))?)));
    }
    fs::write(out.join("initrd"), cpio::archive(&entries))?;
    run(r#"set -e; cd "$R/.."
        mb=$(du -sm --apparent-size root | cut -f1)
        mke2fs -q -t ext4 -O ^has_journal,^resize_inode -m 0 -N 40000 -E lazy_itable_init=0 -d root \
            root.new $((mb * 6 / 5 + 64))M
        rm -rf root; mv root.new root.img"#)?;
    Ok(())
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn name_of_only_entry(dir: &Path) -> Result<String> {
    let mut names = fs::read_dir(dir)?.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        _ => bail!("{} should hold exactly one folder", dir.display()),
    }
}

/// The ELF kernel inside a bzImage: a guest that had to unpack it would boot 3 s later. The places are
/// those of Linux's x86 boot protocol: setup_sects, payload_offset, payload_length.
fn unpack_kernel(image: &[u8]) -> Result<Vec<u8>> {
    let u32_at = |at: usize| -> Result<usize> {
        let bytes = image.get(at..at + 4).context("the kernel image is too short")?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    };
    let start = (usize::from(image[0x1f1]) + 1) * 512 + u32_at(0x248)?;
    // The last four bytes are the unpacked size, not the packer's.
    let packed = image.get(start..start + u32_at(0x24c)? - 4).context("the kernel's payload is cut off")?;
    let tool = match packed {
        [0xfd, b'7', b'z', ..] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        [0x02, 0x21, 0x4c, 0x18, ..] => "lz4",
        _ => bail!("the kernel image is packed in an unknown way: {:02x?}", &packed[..6]),
    };
    let mut child =
        Command::new(tool).arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context(tool)?;
    let (mut stdin, packed) = (child.stdin.take().context("stdin")?, packed.to_vec());
    let feeder = std::thread::spawn(move || stdin.write_all(&packed));
    let done = child.wait_with_output()?;
    feeder.join().ok().context("the feeder ended badly")??;
    if !done.status.success() {
        bail!("{tool} could not unpack the kernel");
    }
    Ok(done.stdout)
}
