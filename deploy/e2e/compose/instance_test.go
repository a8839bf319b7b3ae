package compose

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/telegram"
	"arizuko/pkg/testkit/need"
)

const (
	// localImage is that of docker-compose.yml, where no other is set.
	localImage = "localhost/arizuko:latest"
	// maxImage is above the size of the daemons, 80 MB.
	maxImage = 200 << 20
	// maxTurns is below the turns that a sender has within an hour, 60.
	maxTurns = 50
)

// An operator's first day with Compose, step by step on one instance: each step needs the ones before.
func TestCompose_FirstDay(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	i := newInstance(t)
	t.Cleanup(i.down)
	env := []string{"ARIZUKO_DATA=" + i.data, "DASH_PUBLIC_URL=http://" + i.host + ":8083"}
	i.configure(env...)

	for _, step := range []struct {
		name string
		run  func(*testing.T, *instance)
	}{
		{"images are built from source", imagesAreBuilt},
		{"programs are static", programsAreStatic},
		{"up without a key answers in the web chat", upWithoutKey},
		{"a killed daemon is restarted", killedIsRestarted},
		{"a refused configuration does not loop fast", refusedDoesNotLoop},
		{"restart of an adapter loses and repeats nothing", restartOfAdapter},
		{"agents in containers", agentsInContainers},
		{"a backup is checked and restored by the image", backupByImage},
		{"an upgrade is rehearsed by the image", rehearsedByImage},
		{"a stop is clean", stopIsClean},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, i.in(t)) }) {
			return
		}
	}
}

// in is the same instance in a subtest.
func (i *instance) in(t *testing.T) *instance {
	same := *i
	same.t = t
	return &same
}

func programsAreStatic(t *testing.T, i *instance) {
	dir, programs := t.TempDir(), []string{}
	for image, names := range map[string][]string{localImage: slices.Concat(daemons, []string{"migrate"}), localImage + "-gated": {"gated", "demo", "agentcheck"}} {
		id := i.engine.Docker(t, "create", "--entrypoint=/bin/none", image)
		for _, name := range names {
			if name == "gated" && image == localImage {
				continue
			}
			i.engine.Docker(t, "cp", id+":/bin/"+name, dir)
			programs = append(programs, filepath.Join(dir, name))
		}
		i.engine.Docker(t, "rm", id)
	}
	for _, path := range programs {
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 || file.Section(".interp") != nil {
			t.Errorf("%s is linked with %q, %v", path, libraries, err)
		}
		file.Close()
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(info.String(), "timetzdata") {
			t.Errorf("%s has no time zones: %s", path, info)
		}
	}
}

func imagesAreBuilt(t *testing.T, i *instance) {
	i.compose("build", "migrate", "gated")
	for _, image := range []string{localImage, localImage + "-gated"} {
		size, err := strconv.Atoi(i.engine.Docker(t, "image", "inspect", "--format", "{{.Size}}", image))
		if err != nil || size > maxImage {
			t.Errorf("%s has %d bytes, %v", image, size, err)
		}
	}
	run := func(want string, args ...string) {
		i.until(fmt.Sprintf("a container to print %q", want), func() bool {
			out, err := i.tryEngine(append([]string{"run", "--rm", "--network=none", "--user=1234:1234", "--read-only"}, args...)...)
			if err != nil && !strings.Contains(out, "permission denied") {
				t.Fatalf("docker run %q: %v\n%s", args, err, out)
			}
			return strings.Contains(out, want)
		})
	}
	run(commit[:12], "--entrypoint=/bin/routd", localImage, "--version")
	for program, want := range map[string]string{
		"sh": "28", "docker": "Docker version", "cat": "BEGIN CERTIFICATE",
	} {
		script := map[string]string{"sh": "echo $((4*7))", "docker": "docker --version", "cat": "cat /etc/ssl/certs/ca-certificates.crt"}[program]
		run(want, "--entrypoint=/bin/sh", localImage+"-gated", "-c", script)
	}
}

var (
	essential = daemon.Core()
	loginLink = regexp.MustCompile(`log in: (http://\S+)`)
)

func upWithoutKey(t *testing.T, i *instance) {
	i.up()
	i.waitHealthy(essential...)
	i.until("the group main", func() bool { return len(i.query(`SELECT folder FROM registered_groups`)) == 1 })
	link := loginLink.FindStringSubmatch(i.compose("logs", "--no-color", "dashd"))
	if link == nil {
		t.Fatalf("no login link in the log of dashd:\n%s", i.logs("dashd"))
	}
	if answer := i.chat(i.browser(link[1]), "hello from compose", "hello from compose"); !strings.Contains(answer, "You said: hello from compose") {
		t.Errorf("answer %q", answer)
	}
	if up := i.inspect("teled", "{{.State.Status}}"); up != "" {
		t.Errorf("teled is %s without its profile", up)
	}
	for _, service := range essential {
		if user := i.inspect(service, "{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}"); user != "1000:1000 true [ALL]" {
			t.Errorf("%s runs with %s", service, user)
		}
	}
	info, err := os.Stat(i.data)
	if err != nil || info.Mode().Perm() != 0o700 || owner(info) != daemonsUser {
		t.Errorf("the data folder is %v of %v, %v", info.Mode(), info.Sys(), err)
	}
}

// chat writes a message in the web chat of the group main and returns the answer to it, which has certain words.
func (i *instance) chat(client *http.Client, text, words string) (answer string) {
	i.t.Helper()
	url := fmt.Sprintf("http://%s:%d/chat/main/messages", i.host, ports["dashd"])
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		i.t.Fatal(err)
	}
	res, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		i.t.Fatal(err)
	}
	defer res.Body.Close()
	if said, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted {
		i.t.Fatalf("POST %s: %s %s", url, res.Status, said)
	}
	i.until(fmt.Sprintf("an answer to %q", text), func() bool {
		res, err := client.Get(url)
		if err != nil {
			i.t.Fatal(err)
		}
		defer res.Body.Close()
		var page struct {
			Messages []struct{ Direction, Content string }
		}
		if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
			i.t.Fatal(err)
		}
		for _, m := range page.Messages {
			if m.Direction == "out" && strings.Contains(m.Content, words) {
				answer = m.Content
			}
		}
		return answer != ""
	})
	return answer
}

func killedIsRestarted(t *testing.T, i *instance) {
	for _, service := range []string{"gated", "dashd"} {
		process := i.inspect(service, "{{.State.Pid}}")
		pid, err := strconv.Atoi(process)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		i.until(service+" to be restarted", func() bool {
			now := i.inspect(service, "{{.State.Pid}}")
			return now != "0" && now != process
		})
	}
	i.waitHealthy("gated", "dashd")
}

// refusedDoesNotLoop starts discd, whose token is the empty file that secrets.sh makes.
func refusedDoesNotLoop(t *testing.T, i *instance) {
	began := time.Now()
	i.up("discd")
	i.until("discd to be restarted three times", func() bool { return i.restarts("discd") >= 3 })
	// A container that is up has the exit code 0.
	i.until("discd to end with 78", func() bool { return i.inspect("discd", "{{.State.ExitCode}}") == "78" })
	if log := i.logs("discd"); !strings.Contains(log, "DISCORD_BOT_TOKEN_FILE: /run/secrets/discord_bot_token is empty") {
		t.Errorf("log of discd:\n%s", log)
	}
	// The pauses are 0.1 s, 0.2 s, 0.4 s and so on, up to a minute.
	limit, pauses := 1, 100*time.Millisecond
	for ; pauses < time.Since(began); pauses = 2*pauses + 100*time.Millisecond {
		limit++
	}
	if n := i.restarts("discd"); n > limit+1 {
		t.Errorf("%d restarts within %s", n, time.Since(began))
	}
	i.compose("stop", "-t", "15", "discd")
	i.compose("rm", "-f", "discd")
}

// restartOfAdapter restarts teled twice while a user writes.
func restartOfAdapter(t *testing.T, i *instance) {
	platform := chatsim.NewTelegram(chatsim.Size{}, telegram.Options{})
	t.Cleanup(func() { platform.Close() })
	env, err := platform.Serve(i.host)
	if err != nil {
		t.Fatal(err)
	}
	alice := platform.NewDM("Alice")
	settings := []string{"ARIZUKO_DATA=" + i.data, "DASH_PUBLIC_URL=http://" + i.host + ":8083", "COMPOSE_PROFILES=telegram"}
	for _, entry := range env {
		if token, ok := strings.CutPrefix(entry, platform.Info().TokenEnv+"="); ok {
			i.writeSecret("telegram_bot_token", token)
		} else {
			settings = append(settings, entry)
		}
	}
	i.configure(settings...)
	i.up()
	i.waitHealthy(append(essential, "teled")...)
	i.compose("exec", "-T", "routd", "/bin/routd", "routes", "add", "--match", "chat_jid="+alice.Chat, "--target", "main")

	restarted := make(chan error, 1)
	go func() {
		err := i.tryStart("restart", "-t", "15", "teled")
		restarted <- errors.Join(err, i.tryStart("restart", "-t", "15", "teled"))
	}()
	var texts []string
	write := func() {
		text := fmt.Sprintf("note %d.", len(texts))
		if _, err := platform.Do(chatsim.Action{Conversation: alice, Verb: msg.VerbMessage, Text: text}); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	for during := true; during; {
		if len(texts) < maxTurns {
			write()
		}
		select {
		case err := <-restarted:
			if err != nil {
				t.Fatal(err)
			}
			during = false
		case <-time.After(300 * time.Millisecond):
		}
	}
	write() // after both
	i.waitHealthy("teled")
	i.wantOneAnswerEach(platform, texts)
}

func (i *instance) wantOneAnswerEach(platform *chatsim.Telegram, texts []string) {
	i.t.Helper()
	i.until("all messages to be stored", func() bool {
		return i.query(`SELECT count(*) FROM messages WHERE direction = 'in' AND platform = 'telegram'`)[0] == strconv.Itoa(len(texts))
	})
	i.waitDelivered()
	last := -1
	for n, text := range texts {
		answers := 0
		for at, a := range platform.Arrivals() {
			if strings.Contains(a.Text, "You said: "+text) || strings.Contains(a.Text, "\n"+text) {
				answers++
				if at < last {
					i.t.Errorf("%q is answered before the one before it", text)
				}
				last = at
			}
		}
		if answers != 1 {
			i.t.Errorf("%q, number %d of %d, has %d answers", text, n, len(texts), answers)
		}
	}
}

// agentsInContainers gives gated the engine's socket, as deploy/compose/agents.yml does. Gated is in the
// machine's network here, and serves the tools at its address in the network of the agents.
func agentsInContainers(t *testing.T, i *instance) {
	const image = "arizuko-caller:1"
	i.engine.Network(i.root, "agents", agentsAddress)
	caller := filepath.Join(t.TempDir(), "caller")
	i.shell(i.clone, `CGO_ENABLED=0 go build -buildvcs=false -o "$1" arizuko/deploy/e2e/agents/caller`, caller)
	i.engine.Import(t, image, map[string]string{"agent": caller})
	socket := strings.TrimPrefix(i.engine.Host, "unix://")
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	i.configure("COMPOSE_FILE=docker-compose.yml:deploy/compose/agents.yml", "ARIZUKO_DATA="+i.data, "DASH_PUBLIC_URL=http://"+i.host+":8083",
		"DOCKER_SOCKET="+socket, fmt.Sprintf("DOCKER_GID=%d", info.Sys().(*syscall.Stat_t).Gid), "AGENT_IMAGE="+image,
		"AGENT_NETWORK=agents", "AGENT_MCP_URL=http://"+agentsAddress+":8084")
	i.up()
	i.waitHealthy(essential...)
	i.compose("exec", "-T", "gated", "/bin/gated", "check")
	client := i.browser(strings.TrimSpace(i.compose("exec", "-T", "dashd", "/bin/dashd", "login")))
	if answer := i.chat(client, `call send_message {"text":"from a container"}`, "send_message"); !strings.Contains(answer, `send_message {"message_id":`) {
		t.Errorf("answer %q", answer)
	}
	if sent := i.query(`SELECT content FROM messages WHERE source = 'tool'`); len(sent) != 1 || sent[0] != "from a container" {
		t.Errorf("messages of the tool: %q", sent)
	}
	agents := i.engine.Docker(t, "ps", "--filter", "label=arizuko.instance", "--format", "{{.Image}}")
	if agents != image {
		t.Errorf("containers of agents: %q", agents)
	}
	if runtime := i.query(`SELECT runtime FROM runs ORDER BY id DESC LIMIT 1`); runtime[0] != "docker" {
		t.Errorf("the last run is of %q", runtime)
	}
}

// backupByImage has the lines of deploy/README.md, for a machine without programs but Docker's.
func backupByImage(t *testing.T, i *instance) {
	docker := func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir, cmd.Env = i.clone, append(i.engine.Environ(), "HOME="+i.clone, "COMPOSE_PROJECT_NAME=arizuko")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	docker("umask 077; docker-compose exec -T dashd dashd backup - > arizuko.tgz")
	if out := docker("docker run --rm -i --network none -v /var/tmp:/var/tmp -e TMPDIR=/var/tmp " + localImage + " dashd backup --verify - < arizuko.tgz"); !strings.Contains(out, "is whole") {
		t.Errorf("verify printed %s", out)
	}
	folder := filepath.Join(filepath.Dir(i.data), "restored")
	docker("docker run --rm -i -u 0 --network none -v " + folder + ":/data -e ARIZUKO_DATA=/data " + localImage + " dashd restore - < arizuko.tgz")
	for _, name := range []string{"arizuko.db", "secret", "groups"} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || owner(info) != daemonsUser {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// rehearsedByImage does what the line of deploy/README.md does: gated's image has the programs that decide again. Compose's own
// `run` links containers, which those in the machine's network, as here, cannot be.
func rehearsedByImage(t *testing.T, i *instance) {
	out := i.engine.Docker(t, "run", "--rm", "--network", "none", "-v", i.data+":"+i.data, "-e", "ARIZUKO_DATA="+i.data, "--entrypoint", "migrate", localImage+"-gated", "rehearse")
	for _, want := range []string{"there is nothing to migrate", "messages: ", "next times of reminders: ", "the instance was not changed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func stopIsClean(t *testing.T, i *instance) {
	i.compose("stop", "-t", "15")
	for _, service := range essential {
		if code := i.inspect(service, "{{.State.ExitCode}}"); code != "0" {
			t.Errorf("%s ended with %s", service, code)
		}
	}
	if left := i.engine.Docker(t, "ps", "--quiet", "--filter", "label=arizuko.instance"); left != "" {
		t.Errorf("containers of agents: %q", left)
	}
}
