#!/bin/sh
# RigTune in one file. It unpacks itself once into the cache and starts; no rights are needed.
#
#     ./rigtune-VERSION-linux-MACHINE.run                the window
#     ./rigtune-VERSION-linux-MACHINE.run tune FILE      what the command line offers
#     ./rigtune-VERSION-linux-MACHINE.run --install      put it into the menu (then see install.sh)
set -eu

sum=@SUM@
line=@LINE@
home=${XDG_CACHE_HOME:-$HOME/.cache}/rigtune/run
folder=$home/$sum

refuse() {
    echo "$1" >&2
    exit 1
}

is_running() {
    for exe in /proc/[0-9]*/exe; do
        case $(readlink "$exe" 2>/dev/null || true) in
            "$1"/*) return 0 ;;
        esac
    done
    return 1
}

unpack() {
    mkdir -p -- "$home" || refuse "RigTune cannot write to $home, where it would unpack itself."
    part=$(mktemp -d "$home/part.XXXXXX") || refuse "RigTune cannot write to $home."
    trap 'rm -rf -- "$part"' EXIT
    trap 'exit 130' INT TERM HUP
    echo "RigTune unpacks itself into $folder, once ..." >&2
    tail -n +"$line" -- "$0" | tar -xzf - -C "$part" --strip-components=1 ||
        refuse "RigTune could not unpack itself: the file is incomplete, or the disk is full."
    said=$("$part/rigtune/rigtune" --version 2>&1) || refuse "RigTune does not start here: $said
It needs $(cat "$part/minimum.txt"); this system has $(getconf GNU_LIBC_VERSION || echo no glibc)."
    # Whoever came first has won; both unpacked the same.
    mv -T -- "$part" "$folder" 2>/dev/null || [ -e "$folder/rigtune/rigtune" ] ||
        refuse "RigTune cannot write to $folder."
    for other in "$home"/*; do
        case $other in
            "$folder" | "$home"/part.*) ;; # ours, or what somebody unpacks now
            *) is_running "$other" || rm -rf -- "$other" ;;
        esac
    done
    find "$home" -maxdepth 1 -name 'part.*' -mtime +0 -exec rm -rf -- {} +
}

if [ ! -e "$folder/rigtune/rigtune" ]; then unpack; fi
if [ "${1:-}" = --install ]; then
    shift
    exec sh "$folder/install.sh" "$@"
fi
exec "$folder/rigtune/rigtune" "$@"
