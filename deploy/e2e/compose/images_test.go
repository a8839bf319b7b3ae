package compose

import (
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/need"
)

// compilerPackages are the packages of the image of Go that dist.sh uses, besides Go.
var compilerPackages = []string{"gcc", "libc6-dev", "bash", "coreutils", "sed", "grep", "ca-certificates"}

// importImages makes images under the names in deploy/docker/Dockerfile from files of this machine.
func importImages(t *testing.T, engine *docker.Engine) {
	t.Helper()
	named := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^ARG (\w+_IMAGE)=(\S+)$`).FindAllStringSubmatch(readFile(t, "deploy/docker/Dockerfile"), -1) {
		named[m[1]] = m[2]
	}
	if len(named) != 3 {
		t.Fatalf("images %q", named)
	}
	engine.Import(t, named["BUSYBOX_IMAGE"], map[string]string{"bin/busybox": program(t, "busybox")})
	engine.Import(t, named["DOCKER_IMAGE"], map[string]string{"usr/local/bin/docker": program(t, "docker")})
	engine.Import(t, named["GO_IMAGE"], compiler(t), "ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOTOOLCHAIN=local")
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compiler are the files of Go and of a C compiler.
func compiler(t *testing.T) map[string]string {
	t.Helper()
	need.Program(t, "dpkg-query", "dpkg")
	files := map[string]string{"tmp/.keep": os.DevNull}
	loaders, err := filepath.Glob("/lib64/ld-linux*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(loaders, "/etc/ssl/certs/ca-certificates.crt", "/bin/sh") { // no package lists these paths
		files[strings.TrimPrefix(path, "/")] = path
	}
	goRoot := output(t, "go", "env", "GOROOT")
	err = filepath.WalkDir(goRoot, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative := strings.TrimPrefix(path, goRoot+"/")
		if entry.IsDir() {
			if entry.Name() == "testdata" || relative == "test" || relative == "api" {
				return fs.SkipDir
			}
			return nil
		}
		files["usr/local/go/"+relative] = path
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	depends := append([]string{"depends", "--recurse", "--installed", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks",
		"--no-replaces", "--no-enhances"}, compilerPackages...)
	packages := regexp.MustCompile(`(?m)^[a-z]\S*$`).FindAllString(output(t, "apt-cache", depends...), -1)
	for path := range strings.Lines(output(t, "dpkg-query", append([]string{"--listfiles"}, packages...)...)) {
		path = strings.TrimSpace(path)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files[strings.TrimPrefix(path, "/")] = path
		}
	}
	return files
}

// output is what a program prints on stdout; what it says of names that it does not know is ignored.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// serveModules serves the modules that this machine has, as a proxy of Go modules does, and returns its URL.
func serveModules(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.FileServer(http.Dir(output(t, "go", "env", "GOMODCACHE") + "/cache/download"))}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}
