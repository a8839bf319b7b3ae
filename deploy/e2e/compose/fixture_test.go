package compose

import (
	"cmp"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"gopkg.in/yaml.v3"

	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/need"
)

const (
	// maxWait is how long anything may take. It says nothing about speed.
	maxWait = 2 * time.Minute
	// maxStarts is how often a start is tried: a busy engine starts a container now and then without
	// its files, and says "permission denied".
	maxStarts = 5
	// daemonsUser is the user and group that docker-compose.yml runs all daemons as.
	daemonsUser = 1000
)

// agentsAddress is the machine's in the network of agents.
const agentsAddress = "172.31.252.1"

// ports are those in docker-compose.yml.
var ports = map[string]int{"gated": 8080, "routd": 8081, "onbod": 8082, "dashd": 8083, "teled": 8091, "discd": 8092, "slakd": 8093}

// instance is a copy of the repository, and an instance that Debian's Compose starts from it on an
// engine of its own. The engine has no bridge: containers use the machine's network, on an address of
// the instance.
type instance struct {
	t      *testing.T
	root   *testing.T // of the whole instance
	engine *docker.Engine
	clone  string
	data   string
	host   string
	proxy  string // GOPROXY of the build
}

// commit is the one that the copy of the repository has checked out.
const commit = "0123456789abcdef0123456789abcdef01234567"

// newInstance copies the repository. It has no network to build in: images of registries are made here.
func newInstance(t *testing.T) *instance {
	t.Helper()
	need.Program(t, "docker-compose", "docker-compose")
	need.Program(t, "busybox", "busybox-static")
	engine := docker.Start(t)
	dir, err := os.MkdirTemp("", "compose") // the path of a socket is limited to about a hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	i := &instance{
		t: t, root: t, engine: engine, clone: filepath.Join(dir, "arizuko"), data: filepath.Join(dir, "data"),
		host: fmt.Sprintf("127.70.%d.%d", os.Getpid()>>8&255, 1+os.Getpid()%254),
	}
	i.shell(repository(t), `mkdir "$1" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$1"`, i.clone)
	i.shell(i.clone, `mkdir -p .git/refs/heads && echo "ref: refs/heads/main" >.git/HEAD && echo "$1" >.git/refs/heads/main`, commit)
	i.shell(i.clone, "deploy/compose/secrets.sh")
	importImages(t, engine)
	i.proxy = serveModules(t)
	return i
}

// shell runs a script and returns its output.
func (i *instance) shell(dir, script string, args ...string) string {
	i.t.Helper()
	cmd := exec.Command("sh", append([]string{"-ec", script, "sh"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		i.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// tryCompose runs docker-compose in the clone.
func (i *instance) tryCompose(args ...string) (string, error) {
	cmd := exec.Command("docker-compose", args...)
	cmd.Dir, cmd.Env = i.clone, append(i.engine.Environ(), "HOME="+i.clone, "COMPOSE_PROJECT_NAME=arizuko")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (i *instance) compose(args ...string) string {
	i.t.Helper()
	out, err := i.tryCompose(args...)
	if err != nil {
		i.t.Fatalf("docker-compose %q: %v\n%s", args, err, out)
	}
	return out
}

// configure writes .env, and from the files that it names a host.yml for an engine without a bridge,
// which becomes the file in use.
func (i *instance) configure(env ...string) {
	i.t.Helper()
	env = append(env, "GOPROXY="+i.proxy)
	i.write(".env", append(env, "COMPOSE_PROFILES=telegram,discord,slack")) // config shows services of these only
	var project map[string]any
	if err := yaml.Unmarshal([]byte(i.compose("config")), &project); err != nil {
		i.t.Fatal(err)
	}
	for _, service := range project["services"].(map[string]any) {
		i.onHost(service.(map[string]any))
	}
	delete(project, "networks") // no service is in one
	content, err := yaml.Marshal(project)
	if err == nil {
		err = os.WriteFile(filepath.Join(i.clone, "host.yml"), content, 0o600)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	i.write(".env", append(env, "COMPOSE_FILE=host.yml"))
}

// onHost moves a service to the machine's network.
func (i *instance) onHost(service map[string]any) {
	delete(service, "ports")
	delete(service, "networks")
	service["build"].(map[string]any)["network"] = "host" // where the modules are served
	if service["network_mode"] == nil {
		service["network_mode"] = "host"
	}
	environment, _ := service["environment"].(map[string]any)
	switch environment["GATED_MCP_ADDR"] {
	case "0.0.0.0:8084":
		environment["GATED_MCP_ADDR"] = agentsAddress + ":8084"
	case "127.0.0.1:8084": // which a live instance may have
		environment["GATED_MCP_ADDR"] = i.host + ":8084"
	}
	for name, port := range ports {
		name, addr := strings.ToUpper(name), fmt.Sprintf("%s:%d", i.host, port)
		for variable, value := range map[string]string{name + "_ADDR": addr, name + "_URL": "http://" + addr} {
			if environment[variable] != nil {
				environment[variable] = value
			}
		}
	}
}

// write writes lines to a file of the clone, later ones instead of earlier ones of the same variable.
func (i *instance) write(file string, lines []string) {
	i.t.Helper()
	last := map[string]string{}
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "=")
		last[name] = line
	}
	var b strings.Builder
	for _, line := range last {
		b.WriteString(line + "\n")
	}
	if err := os.WriteFile(filepath.Join(i.clone, file), []byte(b.String()), 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// writeSecret stores a token as deploy/README.md says: in a file that the daemons' user owns.
func (i *instance) writeSecret(name, value string) {
	i.t.Helper()
	path := filepath.Join(i.clone, "secrets", name)
	if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
		i.t.Fatal(err)
	}
	if err := os.Chown(path, daemonsUser, daemonsUser); err != nil {
		i.t.Fatal(err)
	}
}

// up starts services, all by default.
func (i *instance) up(services ...string) {
	i.t.Helper()
	if err := i.tryStart(append([]string{"up", "-d", "-t", "15"}, services...)...); err != nil {
		i.t.Fatalf("%v\n%s", err, i.logs())
	}
}

// tryStart runs a command of docker-compose that starts containers.
func (i *instance) tryStart(args ...string) error {
	for try := 1; ; try++ {
		out, err := i.tryCompose(args...)
		switch {
		case err == nil:
			return nil
		case try == maxStarts || !strings.Contains(out, "permission denied"):
			return fmt.Errorf("docker-compose %q: %w\n%s", args, err, out)
		}
		args = []string{"up", "-d", "-t", "15"}
	}
}

// logs is the end of the logs of services, all by default.
func (i *instance) logs(services ...string) string {
	out, err := i.tryCompose(append([]string{"logs", "--no-color", "--tail=60"}, services...)...)
	return cmp.Or(out, fmt.Sprint(err))
}

// down removes the containers, after it has shown their logs if the test has failed.
func (i *instance) down() {
	if i.t.Failed() {
		i.t.Log(i.logs())
	}
	if out, err := i.tryCompose("down", "-t", "15"); err != nil {
		i.t.Errorf("%v\n%s", err, out)
	}
}

// inspect inspects a service's container, and returns "" if there is none.
func (i *instance) inspect(service, format string) string {
	i.t.Helper()
	id, err := i.tryCompose("ps", "-a", "-q", service)
	if err != nil || strings.TrimSpace(id) == "" {
		return ""
	}
	return i.engine.Docker(i.t, "inspect", "--format", format, strings.TrimSpace(id))
}

func (i *instance) restarts(service string) int {
	i.t.Helper()
	n, err := strconv.Atoi(i.inspect(service, "{{.RestartCount}}"))
	if err != nil {
		i.t.Fatal(err)
	}
	return n
}

func (i *instance) until(what string, holds func() bool) {
	i.t.Helper()
	deadline := time.Now().Add(maxWait)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ticks := 1; !holds(); ticks++ {
		if time.Now().After(deadline) {
			i.t.Fatalf("timed out waiting for %s\n%s", what, i.logs())
		}
		if ticks%50 == 0 {
			i.startFailed()
		}
		<-tick.C
	}
}

// startFailed starts containers whose restart has failed for want of their files: the engine tries
// that once.
func (i *instance) startFailed() {
	i.t.Helper()
	for id := range strings.FieldsSeq(i.engine.Docker(i.t, "ps", "--all", "--quiet", "--filter=status=exited", "--filter=status=created")) {
		if problem := i.engine.Docker(i.t, "inspect", "--format={{.State.Error}}", id); strings.Contains(problem, "permission denied") {
			i.t.Logf("container %s is started again: %s", id, problem)
			_, _ = i.tryEngine("start", id) // tried again
		}
	}
}

// tryEngine runs the engine's client.
func (i *instance) tryEngine(args ...string) (string, error) {
	cmd := exec.Command("docker", args...)
	cmd.Env = i.engine.Environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (i *instance) waitHealthy(services ...string) {
	i.t.Helper()
	for _, service := range services {
		i.until(service+" to be healthy", func() bool {
			return i.inspect(service, "{{.State.Status}} {{.State.Health.Status}}") == "running healthy"
		})
	}
}

// query returns the rows of a query. The database is opened for reading, so that no file becomes root's.
func (i *instance) query(query string, args ...any) []string {
	i.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(i.data, "arizuko.db")+"?mode=ro&_busy_timeout=10000")
	if err != nil {
		i.t.Fatal(err)
	}
	defer db.Close()
	rows, err := invariants.Lines(db, query, args...)
	if err != nil {
		i.t.Fatal(err)
	}
	return rows
}

// waitDelivered waits until nothing is undecided, unanswered or undelivered.
func (i *instance) waitDelivered() {
	i.t.Helper()
	i.until("everything to be delivered", func() bool {
		return i.query(`SELECT (SELECT count(*) FROM messages WHERE direction = 'in' AND disposition IS NULL)
			+ (SELECT count(*) FROM turns WHERE state NOT IN ('done', 'failed', 'cancelled'))
			+ (SELECT count(*) FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending'))`)[0] == "0"
	})
}

// browser is a browser without a page, logged in with a link.
func (i *instance) browser(link string) *http.Client {
	i.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		i.t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: 30 * time.Second}
	res, err := client.Get(link)
	if err != nil {
		i.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		i.t.Fatalf("GET %s: %s", link, res.Status)
	}
	return client
}
