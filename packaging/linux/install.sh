#!/bin/sh
# Installs RigTune for this user, without an administrator's rights:
#
#     sh install.sh                     install, or replace an older version
#     sh install.sh --remove            remove the program, keep results and settings
#     sh install.sh --remove --data     remove those too
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
share=${XDG_DATA_HOME:-$HOME/.local/share}
program=$HOME/.local/lib/rigtune
bin=$HOME/.local/bin
icons=$share/icons/hicolor
desktop=$share/applications/rigtune.desktop
metainfo=$share/metainfo/org.rigtune.rigtune.metainfo.xml

refuse() {
    echo "$1" >&2
    exit 1
}

# A running program would go on with half of its files from the new version.
is_running() {
    for exe in /proc/[0-9]*/exe; do
        case $(readlink "$exe" 2>/dev/null || true) in
            "$program"/*) return 0 ;;
        esac
    done
    return 1
}

remove_program() {
    for name in rigtune rigtune-gui; do
        case $(readlink "$bin/$name" 2>/dev/null || true) in
            "$program"/*) rm -f -- "$bin/$name" ;;
        esac
    done
    rm -rf -- "$program" "$desktop" "$metainfo"
    rm -f -- "$icons"/*/apps/rigtune.png "$icons"/scalable/apps/rigtune.svg
}

# Desktops find the new entry by themselves sooner or later; with these tools at once.
tell_desktop() {
    update-desktop-database "$share/applications" 2>/dev/null || true
    gtk-update-icon-cache -q -t "$icons" 2>/dev/null || true
}

remove() {
    remove_program
    tell_desktop
    if [ "${1:-}" = "--data" ]; then
        rm -rf -- "$share/rigtune" "${XDG_CACHE_HOME:-$HOME/.cache}/rigtune" \
            "${XDG_STATE_HOME:-$HOME/.local/state}/rigtune"
        echo "RigTune and its results are removed."
    else
        echo "RigTune is removed. Its results stay in $share/rigtune."
    fi
}

# Starting it is the only sure test, and what it lacks is worth a sentence.
check_it_starts() {
    if said=$("$here/rigtune/rigtune" --version 2>&1); then
        return 0
    fi
    have=$(getconf GNU_LIBC_VERSION 2>/dev/null || echo "no glibc")
    refuse "RigTune does not start here: $said
It needs $(cat "$here/minimum.txt"); this system has $have."
}

missing_libraries() {
    known=$( (ldconfig -p || /sbin/ldconfig -p) 2>/dev/null || true)
    while read -r library package; do
        case $known in
            *"$library"*) ;;
            *) echo "$package" ;;
        esac
    done <"$here/window-libraries.txt"
}

# The path may hold blanks and letters of any script; these four mean something to the desktop.
quoted() {
    printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"`$]/\\\\&/g; s/%/%%/g')"
}

# The engine of the version that is replaced stays, so that the user can go back to it
# (rigtune engine): unless it is the same version, does not start, or was left for the one before.
keep_engine() {
    if older=$("$program/rigtune" --version 2>/dev/null) && [ "$older" != "$said" ] &&
        ! { [ -e "$share/rigtune/previous-engine-in-use" ] && [ -e "$program/previous" ]; }; then
        rm -rf -- "$program/previous" "$program/rigtune-gui" "$program/_internal/PySide6" \
            "$program/_internal/shiboken6" "$program/_internal/pyqtgraph"
        mv -- "$program" "$program.new/previous"
    elif [ -e "$program/previous" ]; then
        mv -- "$program/previous" "$program.new/previous"
    fi
}

install() {
    check_it_starts
    mkdir -p -- "$HOME/.local/lib" "$bin" "$share/applications" "$share/metainfo"
    # Beside the old one and then in its place, so that a full disk leaves the old one whole.
    rm -rf -- "$program.new"
    cp -R -- "$here/rigtune" "$program.new" || {
        rm -rf -- "$program.new"
        refuse "RigTune could not be copied to $program; what was there is untouched."
    }
    cp -- "$here/install.sh" "$program.new/uninstall.sh"
    keep_engine
    remove_program
    mv -- "$program.new" "$program"
    for name in rigtune rigtune-gui; do
        if [ -e "$bin/$name" ]; then
            echo "$bin/$name is something else and stays; RigTune's is $program/$name."
        else
            ln -s -- "$program/$name" "$bin/$name"
        fi
    done
    exec_line=$(quoted "$program/rigtune-gui")
    while IFS= read -r line; do
        case $line in
            Exec=*) printf 'Exec=%s\n' "$exec_line" ;;
            *) printf '%s\n' "$line" ;;
        esac
    done <"$here/share/rigtune.desktop" >"$desktop"
    cp -- "$here/share/org.rigtune.rigtune.metainfo.xml" "$metainfo"
    mkdir -p -- "$icons"
    cp -R -- "$here/share/icons/." "$icons/"
    tell_desktop
    echo "$said is installed in $program."
    echo "Start it from the menu, or type: rigtune"
    case ":$PATH:" in
        *":$bin:"*) ;;
        *) echo "($bin is not in PATH yet: log in again, or type $bin/rigtune)" ;;
    esac
    lacking=$(missing_libraries | sort -u | tr '\n' ' ')
    if [ -n "$lacking" ]; then
        echo "The window still needs: sudo apt install $lacking"
        echo "(names on Debian and Ubuntu; without it everything works in the terminal)"
    fi
    echo "Power limits need one more step, which is optional:"
    echo "    sudo sh '$here/power/install.sh' '$here/power/rigtune-power'"
}

case "${1:-}" in
    "") action=install ;;
    --remove) action=remove ;;
    *) echo "usage: install.sh | --remove [--data]" >&2 && exit 2 ;;
esac
if is_running; then
    refuse "RigTune is running. Close it first."
fi
if [ "$action" = install ]; then install; else remove "${2:-}"; fi
