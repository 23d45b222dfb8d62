//! `millrace token`.

use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Look, Table};
use api::{Rights, TokenAdd, TokenAdded, Tokens};
use clap::{Args, Subcommand};

/// Make, list and remove the tokens of the API over TCP.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
A request over TCP shows the secret of a token (Authorization: Bearer SECRET).
The socket needs none. To use this command line from elsewhere, put the secret
into a file and name it in MILLRACE_TOKEN_FILE. --fingerprint (from token ls) or
MILLRACE_CA_FILE says which certificate the head has.

Examples:
  millrace token add ansible
  millrace token add monitor --read --expires 90d
  millrace token ls
  millrace --url https://10.0.0.1:8420 --fingerprint HEX status
  millrace --url https://array1.example:8420 status")]
pub enum TokenCommand {
    /// Make a token and print its secret, which is not shown again
    #[command(after_help = "\
Examples:
  millrace token add ansible
  millrace token add monitor --read --expires 90d")]
    Add(TokenArgs),
    /// List tokens, and the fingerprint of the API's certificate
    #[command(after_help = "\
Examples:
  millrace token ls
  millrace token ls --json")]
    Ls,
    /// Remove a token: it is refused at once
    #[command(after_help = "\
Examples:
  millrace token rm monitor")]
    Rm {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// A new token.
#[derive(Args, Debug)]
pub struct TokenArgs {
    /// Name: letters, digits, dots, hyphens and underscores
    #[arg(value_name = "NAME")]
    name: String,
    /// Let it read alone
    #[arg(long)]
    read: bool,
    /// How long it is good: 45m, 12h, 90d or 52w [default: until it is removed]
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::span)]
    expires: Option<u64>,
}

/// Carries out one of them.
pub fn run(command: TokenCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        TokenCommand::Add(TokenArgs { name, read, expires }) => {
            let rights = if read { Rights::Read } else { Rights::Full };
            let add = TokenAdd { name: name.clone(), rights, expires_seconds: expires };
            let added: TokenAdded = client.post("/tokens", &add)?;
            Ok(context.show(&added, |added| {
                let what = format!("Token {name} is made. Its secret is not shown again:");
                context.terminal.paragraph(Look::Plain, "", &what, 2)
                    + &format!("{}\n", added.secret)
                    + &context.terminal.next("millrace token ls")
            }))
        }
        TokenCommand::Ls => {
            let tokens: Tokens = client.get("/tokens")?;
            Ok(context.show(&tokens, |tokens| list(tokens, context)))
        }
        TokenCommand::Rm { name } => {
            client.delete(&format!("/tokens/{}", segment(&name)))?;
            Ok(context.done(format!("Token {name} is removed."), ""))
        }
    }
}

fn list(found: &Tokens, context: &Context) -> String {
    let mut out = String::new();
    if found.tokens.is_empty() {
        out.push_str(&format!("There is no token.\n{}", context.terminal.next("millrace token add NAME")));
    } else {
        let mut table = Table::new(&["TOKEN", "RIGHTS", "MADE", "EXPIRES", "LAST USED"]);
        for token in &found.tokens {
            let time =
                |t: &Option<api::Time>, none: &str| t.as_ref().map_or(none.to_string(), ToString::to_string);
            table.row([
                token.name.clone().into(),
                token.rights.word().into(),
                time(&token.created, "-").into(),
                time(&token.expires, "never").into(),
                time(&token.used, "never").into(),
            ]);
        }
        out.push_str(&table.print(context.terminal, 0));
    }
    match (&found.address, &found.fingerprint) {
        (None, _) => out.push_str("The API does not listen over TCP.\n"),
        (Some(address), None) => out.push_str(&format!("The API listens at {address}, without TLS.\n")),
        (Some(address), Some(fingerprint)) => {
            out.push_str(&format!(
                "The API listens at {address}. Fingerprint of its certificate:\n{fingerprint}\n"
            ));
        }
    }
    out
}
