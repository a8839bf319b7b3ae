package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/egress"
	"arizuko/pkg/testkit/need"
)

// run runs a program with the variables of a sandbox, and further ones, and returns what it prints.
func (w *world) run(t *testing.T, cmd *exec.Cmd, env ...string) (string, error) {
	t.Helper()
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + t.TempDir(), "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_NOSYSTEM=1"}, Environ(w.url, w.bundle, ""), env)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// connectInNode is what libraries for node do, whose fetch has not known proxies for long.
const connectInNode = `const u = new URL(process.env.HTTPS_PROXY)
require("http").request({host: u.hostname, port: u.port, method: "CONNECT", path: "api.test:443", headers: {
  "Proxy-Authorization": "Basic " + Buffer.from(u.username + ":" + u.password).toString("base64")}}).on("connect", (_, socket) =>
    require("https").request({host: "api.test", socket, agent: false, method: "POST", headers: {Authorization: "Bearer SECRET"}},
      res => res.pipe(process.stdout)).end("x")).end()`

// TestClients: real programs, with the variables of a sandbox, send a secret that they do not have.
func TestClients(t *testing.T) {
	t.Parallel()
	upstream := func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		switch {
		case password != value && r.Header.Get("Authorization") != "Bearer "+value && r.Header.Get("Authorization") != "token "+value:
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case r.URL.Path == "/pack":
			fmt.Fprint(w, `{"name":"pack","dist-tags":{"latest":"1.2.3"},"versions":{"1.2.3":{"name":"pack","version":"1.2.3"}}}`)
		case r.URL.Path == "/simple/pack/":
			fmt.Fprint(w, `<a href="pack-1.2.3.tar.gz">pack-1.2.3.tar.gz</a>`)
		default:
			fmt.Fprintf(w, "welcome %s %s\n", r.Method, r.Proto)
		}
	}
	const welcome = "welcome POST HTTP/1.1"
	for name, tt := range map[string]struct {
		want    string
		command []string
	}{
		"curl":   {welcome, []string{"curl", "-sS", "-d", "x=1", "-H", "Authorization: Bearer SECRET", "https://api.test/"}},
		"curl 2": {welcome, []string{"curl", "-sS", "--http2", "-d", "x=1", "-u", "me:SECRET", "https://api.test/"}},
		"python": {welcome, []string{"python3", "-c", `import urllib.request as u
print(u.urlopen(u.Request("https://api.test/", data=b"x", headers={"Authorization": "Bearer SECRET"})).read().decode())`}},
		"node": {welcome, []string{"node", "-e", connectInNode}},
		"gh":   {welcome, []string{"env", "GH_TOKEN=SECRET", "gh", "api", "-X", "POST", "repos/acme/x/issues", "-f", "title=x"}},
		"npm":  {"1.2.3", []string{"npm", "view", "pack", "version", "--registry=https://api.test/", "--//api.test/:_authToken=SECRET"}},
		"pip": {"1.2.3", []string{"python3", "-m", "pip", "index", "versions", "--disable-pip-version-check", "--no-input",
			"--index-url=https://me:SECRET@api.test/simple", "pack"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "gh" {
				need.Verify(t)
				need.Program(t, "gh", "gh")
			}
			need.Program(t, tt.command[0], name)
			w := newWorld(t, upstream, egress.Rule{Host: "api.test", Action: egress.Inject, Secret: "key"},
				egress.Rule{Host: "api.github.com", Action: egress.Inject, Secret: "key"})
			token := w.setSecret("key", value)
			for i := range tt.command {
				tt.command[i] = strings.ReplaceAll(tt.command[i], "SECRET", token)
			}
			out, err := w.run(t, exec.CommandContext(t.Context(), tt.command[0], tt.command[1:]...))
			if err != nil || !strings.Contains(out, tt.want) {
				t.Fatalf("%v: %s", err, out)
			}
			for got := range w.ended { // some send more than one request
				if got.Secret == "key" && got.State == egress.Sent {
					break
				}
			}
		})
	}
}

// TestClients_Git clones and pushes over HTTPS, with a token as password.
func TestClients_Git(t *testing.T) {
	t.Parallel()
	need.Program(t, "git", "git")
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	path, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, missing := os.Stat(backend); err != nil || missing != nil {
		t.Fatalf("git http-backend: %v, %v: it is part of the package git", err, missing)
	}
	git("init", "-q", "--bare", "repo.git")
	git("-C", "repo.git", "config", "http.receivepack", "true")
	server := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x", "HOME=" + dir}}
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != value {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body) // CGI has no chunks
		if err != nil {
			t.Error(err)
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		server.ServeHTTP(w, r)
	}, egress.Rule{Host: "git.test", Action: egress.Inject, Secret: "git"})
	token := w.setSecret("git", value)
	clone := exec.CommandContext(t.Context(), "git", "-C", dir, "clone", "-q", "https://x:"+token+"@git.test/repo.git", "work")
	if out, err := w.run(t, clone); err != nil {
		t.Fatalf("clone: %v %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "work", "large"), []byte(strings.Repeat("line\n", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	git("-C", "work", "add", ".")
	git("-C", "work", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "x")
	push := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(dir, "work"), "-c", "http.postBuffer=1000", "push", "-q", "origin", "HEAD:main")
	if out, err := w.run(t, push); err != nil {
		t.Fatalf("push: %v %s", err, out)
	}
	git("-C", "repo.git", "cat-file", "-e", "main:large")
}
