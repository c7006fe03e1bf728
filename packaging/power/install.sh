#!/bin/sh
# Installs (or removes) RigTune's power helper. Run it as root, once:
#
#     sudo sh packaging/power/install.sh DIST/rigtune-power
#     sudo sh packaging/power/install.sh --remove
#
# DESTDIR puts everything below another folder, for packagers and tests.
set -eu

program=/usr/libexec/rigtune-power
policy=/usr/share/polkit-1/actions/org.rigtune.power.policy
journal=/var/lib/rigtune-power
dest=${DESTDIR:-}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

if [ "$#" -ne 1 ]; then
    echo "usage: install.sh FOLDER | --remove" >&2
    exit 2
fi
if [ -z "$dest" ] && [ "$(id -u)" -ne 0 ]; then
    echo "This needs an administrator: sudo sh $0 $1" >&2
    exit 2
fi

umask 022
if [ "$1" = "--remove" ]; then
    for entry in "$dest$journal"/*.json; do
        if [ -e "$entry" ]; then
            echo "A limit is still to be put back: start RigTune once, or restart the machine." >&2
            exit 1
        fi
    done
    rm -rf -- "$dest$program" "$dest$policy" "$dest$journal"
    echo "Removed."
    exit 0
fi

if [ ! -f "$1/rigtune-power-helper" ]; then
    echo "$1 does not hold the power helper: build it with packaging/power/helper.spec" >&2
    exit 1
fi

# Beside the old one and then in its place, so that no half-copied program ever stands there.
new="$dest$program.new"
rm -rf -- "$new"
mkdir -p -- "$new" "$dest$(dirname "$policy")" "$dest$journal"
cp -R -- "$1/." "$new/"
find "$new" -type d -exec chmod 755 {} +
find "$new" -type f -exec chmod 644 {} +
chmod 755 "$new/rigtune-power-helper"
cp -- "$here/org.rigtune.power.policy" "$dest$policy"
chmod 644 "$dest$policy"
chmod 700 "$dest$journal"
if [ "$(id -u)" -eq 0 ]; then
    chown -R 0:0 "$new" "$dest$policy" "$dest$journal"
fi
rm -rf -- "$dest$program"
mv -- "$new" "$dest$program"
echo "Installed to $dest$program."
