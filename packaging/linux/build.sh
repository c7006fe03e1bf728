#!/bin/sh
# Builds what Linux users download: DIST/rigtune-VERSION-linux-MACHINE.tar.xz with its installer,
# the same in one file that starts itself (.run), their checksums and their list of parts.
#
#     python3 packaging/bootstrap.py env        # once: environment, engine, bundle tools
#     sh packaging/linux/build.sh [DIST]
#
# It runs on the system it was built on and on newer ones, so build on the oldest one you support.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
python=$root/.venv/bin/python
mkdir -p -- "${1:-$root/dist}"
dist=$(CDPATH='' cd -- "${1:-$root/dist}" && pwd)
work=$dist/work
version=$("$python" -c 'from importlib.metadata import version; print(version("rigtune"))')
name=rigtune-$version-linux-$(uname -m)
stage=$dist/$name
: "${SOURCE_DATE_EPOCH:=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH

echo "bundle ..."
rm -rf -- "$stage" "$work"
mkdir -p -- "$stage/share" "$stage/power"
for spec in rigtune.spec power/helper.spec; do
    "$python" -m PyInstaller --noconfirm --log-level ERROR \
        --distpath "$work/dist" --workpath "$work" "$root/packaging/$spec"
done
mv -- "$work/dist/rigtune" "$stage/rigtune"
mv -- "$work/dist/rigtune-power" "$stage/power/rigtune-power"
cp -- "$root/packaging/power/install.sh" "$root/packaging/power/org.rigtune.power.policy" "$stage/power/"

# Python's own libraries may carry what only its debugger reads: half of their size.
find "$stage" \( -name 'libpython*' -o -path '*/lib-dynload/*.so' \) -exec strip --strip-debug {} +

echo "desktop files ..."
cp -- "$here/install.sh" "$here/rigtune.desktop" "$stage/"
mv -- "$stage/rigtune.desktop" "$stage/share/"
day=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)
sed "s/@VERSION@/$version/; s/@DATE@/$day/" "$here/org.rigtune.rigtune.metainfo.xml" \
    >"$stage/share/org.rigtune.rigtune.metainfo.xml"
if command -v appstreamcli >/dev/null; then
    appstreamcli validate --no-net --no-color "$stage/share/org.rigtune.rigtune.metainfo.xml"
fi
(cd "$root" && "$python" "$here/facts.py" "$stage")

echo "archive ..."
archive=$dist/$name.tar.xz
packed() {
    tar -C "$dist" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -cf - "$name"
}
packed | xz -T0 "${XZ_LEVEL:--6}" >"$archive.part"
xz -dc "$archive.part" | tar -tf - >/dev/null # a pipe hides that tar broke off
mv -- "$archive.part" "$archive"

echo "single file ..."
single=$dist/$name.run
# Gzip, because every system can unpack it; the name of the cache is a part of its sum.
packed | gzip -n "${GZIP_LEVEL:--6}" >"$work/payload"
sum=$(sha256sum "$work/payload" | cut -c 1-16)
lines=$(wc -l <"$here/single.sh")
sed "s/@SUM@/$sum/; s/@LINE@/$((lines + 1))/" "$here/single.sh" >"$single.part"
cat "$work/payload" >>"$single.part"
chmod 755 "$single.part"
mv -- "$single.part" "$single"

cp -- "$stage/rigtune/_internal/sbom.json" "$dist/$name.cdx.json"
(cd "$dist" && sha256sum "$name.tar.xz" "$name.run" "$name.cdx.json" >"$name.sha256")
rm -rf -- "$work"
echo "needs $(cat "$stage/minimum.txt")"
du -sh "$stage" "$archive" "$single"
