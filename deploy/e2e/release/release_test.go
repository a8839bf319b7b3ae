// Package release tests the output of deploy/release.
package release

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/testkit/executable"
	"arizuko/pkg/testkit/need"
)

// repository is the top folder. Its path is not cleaned: else Go's test cache does not notice when a file changes.
func repository(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return here + "/../../.."
}

// script runs a script of deploy/release and returns its stdout.
func script(t *testing.T, name string, environ []string, args ...string) (string, error) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(repository(t), "deploy/release", name), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), environ...), &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %q: %w\n%s", name, args, err, &stderr)
	}
	return string(out), err
}

func TestNotes_AreTheSectionOfTheVersion(t *testing.T) {
	t.Parallel()
	changelog := filepath.Join(t.TempDir(), "CHANGELOG.md")
	text := "# Changes\n\n## [Unreleased]\n\n- next\n\n## [1.2.3] - 2026-01-01\n\n### Added\n\n- this\n\n## [1.2.2] - 2025-12-01\n\n- before\n\n## [1.2.1]\n\n## [1.2]\n\n- no version\n\n## [1.0.0-rc.1]\n\n- first\n"
	if err := os.WriteFile(changelog, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"v1.2.3": "### Added\n\n- this\n", "v1.2.2": "- before\n", "v1.0.0-rc.1": "- first\n",
		"v1.2.1": "", "v1.2": "", "v1.2.4": "", "v1": "", "1.2.3": "", "v1.0.0": "", "v1.2.3+a": "", "v1.2.3-": "", "v1.2.3-rc..1": "", "v01.2.3": ""} {
		got, err := script(t, "notes.sh", nil, version, changelog)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

// GitHub must not show a pre-release as the latest release, nor download it.
func TestPublish_PreRelease_IsNotLatest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, folder := range []string{"deploy/release", "files"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"publish.sh", "notes.sh"} {
		content, err := os.ReadFile(filepath.Join(repository(t), "deploy/release", name))
		if err != nil {
			t.Fatal(err)
		}
		executable.Write(t, filepath.Join(dir, "deploy/release", name), content)
	}
	executable.Script(t, dir+"/gh", `echo "$*"; cat`)
	for file, content := range map[string]string{
		"CHANGELOG.md": "## [1.2.3]\n\n- this\n\n## [1.2.3-rc.1]\n\n- nearly\n\n## [1.2.3-0]\n\n- hardly\n", "files/SHA256SUMS": "", "files/a.tar.gz": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for version, want := range map[string]string{
		"v1.2.3":      "--notes-file - files/SHA256SUMS files/a.tar.gz\n- this\n",
		"v1.2.3-rc.1": "--notes-file - --prerelease --latest=false files/SHA256SUMS files/a.tar.gz\n- nearly\n",
		"v1.2.3-0":    "--notes-file - --prerelease --latest=false files/SHA256SUMS files/a.tar.gz\n- hardly\n",
		"v1.2.4":      "", // without notes there is no release
	} {
		cmd := exec.Command(dir+"/deploy/release/publish.sh", version, "files")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if want != "" {
			want = "release create " + version + " --verify-tag --title " + version + " " + want
		}
		if got, err := cmd.Output(); string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", version, got, err, want)
		}
	}
}

// fakeDocker is a script that notes its calls in a file. As buildx does, it prints a table for any template that begins with
// the manifest.
func fakeDocker(calls string) string {
	return `#!/bin/sh
echo "$*" >>` + calls + `
case "$*" in
*"${REFUSE:-nothing}"*) exit 1 ;;
*inspect*"{{.Manifest"*) printf 'Name:      x\nMediaType: y\nDigest:    sha256:abc\n' ;;
*inspect*"{{json .Manifest.Digest}}"*) printf '"sha256:abc"' ;;
esac
`
}

// The names under which images are pushed for each architecture are those that are merged, and docker-compose.yml asks for the
// result.
func TestImages_Merge_TakesWhatWasPushed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	executable.Write(t, filepath.Join(dir, "docker"), []byte(fakeDocker(calls)))
	environ := []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	for _, args := range [][]string{{"push", "v1.2.3", "amd64", "ghcr.io/ann/arizuko"}, {"push", "v1.2.3", "arm64", "ghcr.io/ann/arizuko"}} {
		if _, err := script(t, "images.sh", environ, args...); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := script(t, "images.sh", append(environ, "REFUSE=inspect"), "merge", "v1.2.3", "ghcr.io/ann/arizuko"); err == nil {
		t.Errorf("without a digest it prints %q", out)
	}
	merged, err := script(t, "images.sh", environ, "merge", "v1.2.3", "ghcr.io/ann/arizuko")
	if want := "ghcr.io/ann/arizuko:v1.2.3@sha256:abc\nghcr.io/ann/arizuko:v1.2.3-gated@sha256:abc\n"; err != nil || merged != want {
		t.Errorf("%q, %v", merged, err)
	}
	content, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), "latest") {
		t.Errorf("an image is tagged as the latest one, which may be a pre-release:\n%s", content)
	}
	for _, tag := range []string{"v1.2.3", "v1.2.3-gated"} {
		for _, arch := range []string{"amd64", "arm64"} {
			name := "ghcr.io/ann/arizuko:" + tag + "-" + arch
			if !strings.Contains(string(content), "push "+name+"\n") || !strings.Contains(string(content), "--platform linux/"+arch+" ") {
				t.Errorf("%s is not pushed:\n%s", name, content)
			}
			create, _, _ := strings.Cut(string(content)[strings.Index(string(content), "create -t ghcr.io/ann/arizuko:"+tag+" "):], "\n")
			if !strings.Contains(create+" ", " "+name+" ") {
				t.Errorf("%s is not merged: %s", name, create)
			}
		}
	}
}

const version = "v9.8.7"

// archive makes an archive and returns its path.
func archive(t *testing.T, arch string) string {
	t.Helper()
	folder := t.TempDir()
	if _, err := script(t, "archive.sh", []string{"SOURCE_DATE_EPOCH=1700000000"}, version, arch, folder); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, "arizuko-"+version+"-linux-"+arch)
	bill, err := os.ReadFile(name + ".cdx.json")
	if err != nil || !strings.Contains(string(bill), "pkg:golang/github.com/mattn/go-sqlite3@") {
		t.Errorf("the bill of materials: %v\n%.300s", err, bill)
	}
	return name + ".tar.gz"
}

func checksum(t *testing.T, path string) [32]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(content)
}

// extract returns the folder in an archive.
func extract(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-x", "-z", "-f", path, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".tar.gz"))
}

// wantStatic fails unless all programs are static, and of an architecture.
func wantStatic(t *testing.T, folder string, machine elf.Machine) {
	t.Helper()
	programs, err := filepath.Glob(folder + "/bin/*")
	if err != nil || len(programs) < 13 {
		t.Fatalf("%q, %v", programs, err)
	}
	for _, path := range programs {
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 || file.Section(".interp") != nil || file.Machine != machine {
			t.Errorf("%s is of %s and linked with %q, %v", path, file.Machine, libraries, err)
		}
		file.Close()
	}
}

func TestArchive_OfOneSource_IsTheSame_AndRunsAlone(t *testing.T) {
	need.Verify(t)
	first := archive(t, "amd64")
	if checksum(t, first) != checksum(t, archive(t, "amd64")) {
		t.Error("the same source makes two archives")
	}
	folder := extract(t, first)
	wantStatic(t, folder, elf.EM_X86_64)
	runAlone(t, folder)
}

// runAlone starts an instance of an archive as its page says, with nothing of this machine but the kernel.
func runAlone(t *testing.T, folder string) {
	t.Helper()
	data, err := os.MkdirTemp("", "release") // the path of a socket is limited to about a hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	cmd := exec.Command(folder+"/arizuko", "run")
	cmd.Dir = data
	cmd.Env = []string{"PATH=/bin"}
	for _, name := range []string{"ROUTD", "GATED", "GATED_MCP", "ONBOD", "DASHD"} {
		cmd.Env = append(cmd.Env, name+"_ADDR="+freeAddr(t))
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer patience.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	link, ready := strings.CutPrefix(strings.TrimSpace(line), "arizuko ready: ")
	if err != nil || !ready {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%q, %v\n%s", line, err, &log)
	}
	res, err := http.Get(link)
	if err != nil {
		t.Error(err)
	} else {
		res.Body.Close()
	}
	if version, err := exec.Command(folder+"/bin/gated", "--version").Output(); err != nil || !strings.HasPrefix(string(version), "gated v9.8.7 ") {
		t.Errorf("%s, %v", version, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &log)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// The other architecture is compiled here, and runs where it is made: on a machine of its own.
func TestArchive_OfOtherArchitecture_IsStatic(t *testing.T) {
	need.Verify(t)
	need.Program(t, "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")
	wantStatic(t, extract(t, archive(t, "arm64")), elf.EM_AARCH64)
}
