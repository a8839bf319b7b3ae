package platforms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/need"
)

// maxHealthWait is how long a health check waits.
const maxHealthWait = 3 * time.Second

// Clients without a login that send the header of a post and no body must not keep others out, whatever the daemon.
func TestDaemons_ManySlowBodies_StayHealthy(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	slackWorkspace := chatsim.NewSlack(chatsim.Size{}, slackOptions())
	i := newInstance(t)
	i.serve(newTelegram())
	i.serve(newDiscord())
	i.serve(slackWorkspace)
	i.Instance.Env = append(i.Instance.Env, "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET="+slackWorkspace.SigningSecret(),
		"DASH_PASSWORD=open-sesame-8083")
	posts := map[string]string{
		"dashd": "/login", "gated": "/v1/turns/1/cancel", "routd": "/v1/routes", "teled": "/", "discd": "/", "slakd": "/slack/events",
	}
	i.start("routd", "gated", "dashd", "teled", "discd", "slakd")
	for name, path := range posts {
		limitFiles(t, i.Instance.Process(name).PID(), 260)
		for range 300 {
			c, err := net.DialTimeout("tcp", i.Instance.Addr(name), maxHealthWait)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			t.Cleanup(func() { c.Close() })
			_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\npassword=",
				path, i.Instance.Addr(name))
			if err != nil && !errors.Is(err, net.ErrClosed) { // the daemon may have closed it
				t.Logf("%s: %v", name, err)
			}
		}
		for range 10 {
			if err := healthy(t.Context(), i.Instance.URL(name)); err != nil {
				t.Fatalf("%s with 300 slow posts: %v", name, err)
			}
		}
	}
}

// limitFiles sets how many files a process may have open.
func limitFiles(t *testing.T, pid, files int) {
	t.Helper()
	out, err := exec.Command("prlimit", "--pid", strconv.Itoa(pid), fmt.Sprintf("--nofile=%d:%d", files, files)).CombinedOutput()
	if err != nil {
		t.Fatalf("prlimit: %v: %s", err, out)
	}
}

// healthy asks on a connection of its own, as health checks do.
func healthy(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, maxHealthWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// maxDashboard is how much memory dashd may take, in MiB.
const maxDashboard = 100

// Rows that an agent made large, or that were stored before results were bounded, do not make dashd large.
func TestDashd_HugeRows_MemoryBounded(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	measured := harness.WithoutRace("arizuko/gated", "arizuko/routd", "arizuko/dashd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")
	t.Cleanup(func() {
		if bin, err := measured.Bin(); err == nil {
			_ = os.RemoveAll(bin)
		}
	})
	i := newInstanceOf(t, measured)
	i.start("routd", "gated", "dashd")
	i.AddGroups("main")
	i.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20)
		INSERT INTO messages (chat_jid, direction, kind, sender, content, timestamp, received_at, source, out_state)
		SELECT 'web:main', 'out', 'message', 'agent:main', replace(hex(zeroblob(500000)), '0', '<') || i, i, i, 'agent', 'sent' FROM n`)
	read := func(path string, stream bool) int {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), maxWait)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Instance.URL("dashd")+path, nil)
		i.OK(err)
		secret, err := i.Instance.Secret()
		i.OK(err)
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := http.DefaultClient.Do(req)
		i.OK(err)
		defer res.Body.Close()
		if !stream {
			body, err := io.ReadAll(res.Body)
			i.OK(err)
			return len(body)
		}
		var events, size int
		for chunk := make([]byte, 64<<10); events < 20; {
			n, err := res.Body.Read(chunk)
			i.OK(err)
			events, size = events+bytes.Count(chunk[:n], []byte("event: message")), size+n
		}
		return size
	}
	for _, path := range []string{"/chat/main/messages?limit=200", "/chat/main/messages", "/chat/main/messages?limit=200&view=page&topic="} {
		if size := read(path, false); size > 4<<20 {
			t.Errorf("%s: %d bytes", path, size)
		}
	}
	read("/chat/main/events?after=0", true)
	read("/chat/", false)
	if peak := peakMemory(t, i.Instance.Process("dashd").PID()); peak > maxDashboard {
		t.Errorf("dashd took %d MiB", peak)
	} else {
		t.Logf("dashd took %d MiB", peak)
	}
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is the most memory that a process has had, in MiB.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	match := peakLine.FindSubmatch(status)
	if match == nil {
		t.Fatalf("no VmHWM in\n%s", status)
	}
	kib, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
