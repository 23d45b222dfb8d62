//! The lab by hand: `setup` builds the images of the guests. Without an argument it boots a guest and runs every
//! line from its input there.

use anyhow::{Result, bail};
use lab::{Kernel, Net, Vm, setup};
use std::io::{BufRead, Write};
use std::time::Instant;

fn main() -> Result<()> {
    let word = std::env::args().nth(1);
    match word.as_deref() {
        Some("setup") => {
            for kernel in [Kernel::V6_1, Kernel::V6_12] {
                println!("lab: an image is in {}", setup(kernel)?.display());
            }
            Ok(())
        }
        None => shell(),
        Some(other) => {
            bail!("unknown word '{other}': say 'setup', or nothing for a guest to type commands in")
        }
    }
}

fn shell() -> Result<()> {
    setup(Kernel::V6_1)?;
    let (net, began) = (Net::new()?, Instant::now());
    let vm = Vm::builder("hand").start(&net)?;
    println!(
        "Linux is up after {:.1} s. NVMe host {}, initiator {}.",
        began.elapsed().as_secs_f32(),
        vm.nqn(),
        vm.iqn()
    );
    println!(
        "Each line runs in the guest; a line that begins with '!' runs beside it, at 10.91.0.1 for the guest."
    );
    print!("# ");
    std::io::stdout().flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let done = match line.strip_prefix('!') {
            Some(outside) => net.try_run(outside, std::time::Duration::from_secs(3600)),
            None => vm.try_run(&line, 3600),
        };
        match done {
            Ok(done) => print!("{}{}", done.stdout, done.stderr),
            Err(e) => println!("{e:#}"),
        }
        print!("# ");
        std::io::stdout().flush()?;
    }
    Ok(())
}
