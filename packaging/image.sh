#!/bin/sh
# Builds an image from a program and files of this machine, and prints the name of the archive that holds it.
#
#   packaging/image.sh BINARY FOLDER      the archive (OCI) is put into FOLDER
#
# Load it with `podman load -i FILE`. `make image` builds the program first.
set -eu

binary=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
umask 022

install -D -m 755 "$binary" "$root/usr/bin/millrace"
strip --strip-unneeded "$root/usr/bin/millrace"
install -D -m 644 "$here/head.toml" "$root/etc/millrace/head.toml"
mkdir -p "$root/run/millrace" "$root/var/lib/millrace" "$root/tmp"
# Each library at the path that the loader looks for it, the loader itself among them.
ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do
    install -D -m 755 "$(realpath "$library")" "$root$library"
done
# Names for the users in its log, and the licences that go with the program.
echo 'root:x:0:0:root:/:/usr/bin/millrace' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
mkdir -p "$root/usr/share/doc/millrace"
"$here/licences.sh" >"$root/usr/share/doc/millrace/third-party.txt"
cp "$here/../LICENSE" "$root/usr/share/doc/millrace/LICENSE"
for package in libc6 libgcc-s1; do
    cp "/usr/share/doc/$package/copyright" "$root/usr/share/doc/millrace/$package.copyright" 2>/dev/null || true
done

cp "$here/Containerfile" "$work/"
# A store of its own: nothing is left on the machine, and nothing of it is found.
as_root=
[ "$(id -u)" = 0 ] || as_root="unshare --map-root-user --mount"
builder() { $as_root buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"; }
builder bud --quiet --isolation chroot --tag millrace --file "$work/Containerfile" "$work" >"$work/id"
rm -f "$out/millrace.oci.tar"
builder push --quiet localhost/millrace:latest "oci-archive:$out/millrace.oci.tar:millrace" >"$work/pushed"
echo "$out/millrace.oci.tar"
