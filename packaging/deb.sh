#!/bin/sh
# Packs a program and the files of this folder into a Debian package, and prints its name.
#
#   packaging/deb.sh BINARY FOLDER      the package is put into FOLDER
#
# `make deb` builds the program first. VERSION says another version than that of the workspace and its commit, COMPRESSION
# another way to pack than xz, SIZE_MAX more bytes than the program may have.
set -eu

binary=$(realpath "$1")
out=$2
here=$(realpath "$(dirname "$0")")
source=$(dirname "$here")
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
umask 022

# A commit that has no tag lies before the release that the workspace names, and behind the commits before it.
release=$(sed -n 's/^version = "\(.*\)"/\1/p' "$source/Cargo.toml" | head -1)
commit=$(git -C "$source" log -1 --format='%cd.%h' --date=format-local:%Y%m%d.%H%M%S 2>/dev/null || true)
if [ -z "$commit" ] || [ "$(git -C "$source" tag --points-at HEAD)" = "v$release" ]; then
    version=${VERSION:-$release}
else
    version=${VERSION:-$release~$commit}
fi
# The same commit makes the same package.
epoch=$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH="$epoch"
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-Millrace authors} <${DEBEMAIL:-millrace@packages.invalid}>"

file() { install -D -m 644 "$1" "$root/$2"; }
packed() { gzip -9n <"$1" >"$work/gz" && file "$work/gz" "$2.gz"; }

install -D -m 755 "$binary" "$root/usr/bin/millrace"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/millrace"
size=$(stat -c %s "$root/usr/bin/millrace")
if [ "$size" -ge "${SIZE_MAX:-24000000}" ]; then
    echo "the program has $size bytes, stripped; it may have ${SIZE_MAX:-24000000}" >&2
    exit 1
fi
file "$here/millrace.service" usr/lib/systemd/system/millrace.service
file "$here/millrace.sysusers" usr/lib/sysusers.d/millrace.conf
file "$here/millrace.sysctl" usr/lib/sysctl.d/50-millrace.conf
file "$here/millrace.rules" usr/lib/udev/rules.d/65-millrace.rules

# What the program says of itself.
mkdir "$work/man"
"$binary" man "$work/man" >"$work/said"
for page in "$work"/man/*; do packed "$page" "usr/share/man/man1/${page##*/}"; done
for shell in bash zsh fish; do "$binary" completions $shell >"$work/$shell"; done
file "$work/bash" usr/share/bash-completion/completions/millrace
file "$work/zsh" usr/share/zsh/vendor-completions/_millrace
file "$work/fish" usr/share/fish/vendor_completions.d/millrace.fish
"$binary" serve --example >"$work/head.toml"
file "$work/head.toml" etc/millrace/head.toml

# Documents. The licences of all crates in the program are part of it.
doc=usr/share/doc/millrace
file "$here/debian/copyright" $doc/copyright
for page in admin answers api-codes faults fencing glossary performance two-heads; do
    packed "$source/docs/$page.md" "$doc/$page.md"
done
packed "$source/CHANGELOG.md" $doc/NEWS.md
printf 'millrace (%s) unstable; urgency=medium\n\n  * See NEWS.md.gz.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -u -R -d "@$epoch")" >"$work/changelog"
packed "$work/changelog" $doc/changelog
"$here/licences.sh" >"$work/third-party"
packed "$work/third-party" $doc/third-party.txt

# What the package says of itself.
mkdir "$work/debian" "$root/DEBIAN"
printf 'Source: millrace\n\nPackage: millrace\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/millrace" 2>"$work/shlibdeps" | sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || { cat "$work/shlibdeps" >&2; exit 1; }
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@MAINTAINER@/$maintainer/" \
    -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$root" | cut -f1)/" -e "s/@LIBRARIES@/$libraries/" \
    "$here/debian/control" >"$root/DEBIAN/control"
echo /etc/millrace/head.toml >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "$here/debian/$script" "$root/DEBIAN/$script"; done
(cd "$root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

package=$out/millrace_${version}_$architecture.deb
dpkg-deb --root-owner-group "-Z${COMPRESSION:-xz}" --build "$root" "$package" >"$work/built" || { cat "$work/built" >&2; exit 1; }
echo "$package"
