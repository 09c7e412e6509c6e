# Swift: build, tests, conformance. Where there is no toolchain, on Debian as root, that of the next release is unpacked into
# a folder of the build and runs in a namespace of its own, since it needs a newer C library than the machine may have.
SWIFT_HOME=$CARGO_TARGET_DIR/swift-toolchain
SWIFT_SUITE=trixie
SWIFT_VERSION=6.0

# swift_toolchain: `swift` on PATH, installed where it is missing and can be; else says why not.
swift_toolchain() {
  have swift && return
  local reason=
  if [ "$(id -u)" != 0 ] || ! have apt-get || ! have unshare; then
    reason="no swift, and no Debian where root could unpack one"
  elif [ ! -e "$SWIFT_HOME/complete" ] && ! swift_unpack >"$LOGS/swift-toolchain.log" 2>&1; then
    reason="no swift, and Debian's could not be unpacked ($(tail -n 1 "$LOGS/swift-toolchain.log"))"
  elif ! swift_wrapper || ! "$SWIFT_HOME/bin/swift" --version >"$LOGS/swift-toolchain.log" 2>&1; then
    reason="no swift, and Debian's does not start here ($(tail -n 1 "$LOGS/swift-toolchain.log"))"
  fi
  if [ -n "$reason" ]; then
    echo "$reason"
    return 1
  fi
}

# swift_path: what a toolchain of ours needs in the environment.
swift_path() {
  have swift && return
  local root=$SWIFT_HOME/root
  export PATH=$SWIFT_HOME/bin:$PATH
  export SWIFT_LOADER="$root/lib64/ld-linux-x86-64.so.2 --library-path $root/usr/lib/x86_64-linux-gnu:$root/usr/libexec/swift/lib/swift/linux:$BIN"
}

# swift_unpack: the packages of `swiftlang` and all they need, from where the machine has its own packages from.
swift_unpack() {
  local root=$SWIFT_HOME/root apt=$SWIFT_HOME/apt source key deb
  rm -rf "$SWIFT_HOME"
  mkdir -p "$root"/{dev,proc,tmp,root} "$apt"/lists/partial "$apt"/cache/archives/partial "$SWIFT_HOME/bin"
  apt-get update || return 1
  source=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Codename: bookworm' | head -n 1)
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -n "$source" ] || { echo "the machine has no Debian 12 package source"; return 1; }
  echo "deb [signed-by=$key] $source $SWIFT_SUITE main" >"$apt/sources.list"
  : >"$apt/status"
  cat >"$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Install-Recommends "false";
CONF
  APT_CONFIG=$apt/apt.conf apt-get update || return 1
  APT_CONFIG=$apt/apt.conf apt-get install -y --download-only "swiftlang=$SWIFT_VERSION.*" libc6-dev libstdc++-14-dev || return 1
  for deb in "$apt"/cache/archives/*.deb; do
    # The debugger and the editor's server are most of the rest.
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$root" \
      --exclude='*lldb*' --exclude='*sourcekit*' --exclude='*/swift_static/*' --exclude='*/share/doc/*' || return 1
  done
  rm -rf "$apt"
  for folder in bin sbin lib lib64; do [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
  touch "$SWIFT_HOME/complete"
}

# swift_wrapper: `swift` in the unpacked root. Written anew each time: the folder of the build may be kept, the tree be another.
swift_wrapper() {
  local root=$SWIFT_HOME/root
  cat >"$SWIFT_HOME/bin/swift" <<WRAPPER
#!/bin/sh
# The repository and the build keep their paths inside; the working folder is the root there, so paths have to be whole.
exec unshare --mount sh -c '
  root=\$1; shift
  mount -t proc proc "\$root/proc" && mount --rbind /dev "\$root/dev" && mount --bind /tmp "\$root/tmp" || exit 1
  for folder in "$ROOT" "$CARGO_TARGET_DIR"; do mkdir -p "\$root\$folder" && mount --rbind "\$folder" "\$root\$folder" || exit 1; done
  HOME=/root PATH=/usr/libexec/swift/bin:/usr/bin:/usr/sbin exec chroot "\$root" swift "\$@"
' swift "$root" "\$@"
WRAPPER
  chmod +x "$SWIFT_HOME/bin/swift"
}

swift_test() {
  TOOLSPAN_LIBRARY_DIR=$BIN TOOLSPAN_FIXTURES=$BIN/toolspan-fixtures \
    swift test --package-path "$ROOT/bindings/swift" --scratch-path "$CARGO_TARGET_DIR/swift" -Xswiftc -warnings-as-errors
}

test_swift() {
  local reason
  reason=$(swift_toolchain) || { not_run "swift" "$reason"; return; }
  swift_path
  step "swift shim" bindings/swift/scripts/shim.sh "$BIN"
  step "swift tests" swift_test
  PORTS+=,swift
}

bench_swift() {
  local reason build=$CARGO_TARGET_DIR/swift
  reason=$(swift_toolchain) || { not_run "swift" "$reason"; return; }
  swift_path
  cargo build --release --quiet -p toolspan-uniffi
  TOOLSPAN_LIBRARY_DIR=$BIN swift build --quiet --configuration release --package-path "$ROOT/bindings/swift" --scratch-path "$build" --product toolspan-bench
  row swift 0.25 "${SWIFT_LOADER:+$SWIFT_LOADER }$build/release/toolspan-bench"
  SIZES+=("$BIN/libtoolspan_uniffi.so")
}
