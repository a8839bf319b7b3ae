package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/dashd/internal/rows"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/indexer"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

var benchMessages = flag.Int("messages", 1_000_000, "messages in the database of the benchmark of pages")

// benchPages are what BenchmarkPages opens: each page, and of lists those that are hard to make. In a text, $1, $2 and $3 are
// the most frequent word, a frequent one and a rare one.
func benchPages(start time.Time, last int64) []string {
	at := func(d time.Duration) string { return start.Add(d).UTC().Format("2006-01-02T15:04") }
	length := time.Duration(last) * time.Second
	return []string{
		"/", "/approvals", "/turns", "/turns?state=failed", "/turns?state=queued", "/turns/1001", "/turns/retry", "/turns/1001/context",
		"/messages", fmt.Sprintf("/messages?before=%d", last/2), fmt.Sprintf("/messages/%d", last/2),
		"/messages?chat=telegram:-7", "/messages?sender=telegram:42", "/messages?group=group3", "/messages?direction=out", "/messages?state=failed",
		"/messages?state=waiting", "/messages?state=queued&chat=telegram:-7", "/messages?disposition=dropped&reason=no_route", "/messages?disposition=sticky", "/messages?disposition=undecided",
		"/messages?chat=telegram:-7&sender=telegram:42", "/messages?chat=telegram:-7&direction=out&state=cancelled", "/messages?group=group3&reason=engaged",
		"/messages?group=group3&until=" + at(length/10), "/messages?since=" + at(length/3) + "&until=" + at(length/2), "/messages?chat=none:1",
		"/messages?sender=telegram:42&until=" + at(length/4), "/messages?group=group3&since=" + at(length/20) + "&until=" + at(length/10),
		"/messages?text=$1", "/messages?text=$2", "/messages?text=$3", "/messages?text=$1+$2", "/messages?text=$1+$3", "/messages?text=%22$1+$2%22",
		"/messages?text=$3*", "/messages?text=$1&chat=telegram:-7", "/messages?text=$2&sender=telegram:42", fmt.Sprintf("/messages?text=$1&before=%d", last/2),
		"/search?q=$1", "/search?q=$3", "/search?q=room", "/search?q=no+such+thing", fmt.Sprintf("/search?q=%d", last/2),
		"/lost", "/lost?reason=failed.permanent", "/lost?reason=dropped.no_route", "/lost?reason=parked", "/lost/confirm?reason=failed.permanent", "/lost/confirm?reason=dropped.no_route",
		"/chats", "/chats?platform=discord", "/chats?text=room+1999", "/chats?text=no+such+title", "/chats?before=" + strconv.FormatInt(start.UnixMilli()+5000, 10) + "~telegram:-1",
		"/connect/teled", "/chats/telegram:-7", "/chats/web:group0", "/senders/telegram:42",
		"/groups", "/groups?after=group500", "/groups/group0", "/groups/group0?dir=many", "/groups/group0?session=%23t500", "/hooks/group0.k3q5v7x2m4n6p8r1", "/logs?group=group1&run=1", "/files?group=group0&path=many/file-00001.txt",
		"/routes", "/routes?from=1500", "/routes?q=group7", "/engagement", "/figures", "/figures?by=day", "/figures?by=week", "/turns?state=failed&since=" + at(length/3) + "&until=" + at(length/2), "/spend", "/spend?group=group1", "/spend?day=2026-11-23", "/reminders", "/reminders?group=group1", "/reminders?chat=telegram:-1", "/reminders?after=2500",
		"/polls", "/polls?state=open", "/polls?before=2500", "/audit", "/audit?who=cli", "/audit?what=approve", "/audit?who=cli&what=approve", "/audit?who=rare&what=approve",
		"/access", "/access?chat=telegram:-7&sender=telegram:42", "/settings", "/notifications", "/egress", "/egress?of=group1&state=failed",
		"/chat/", "/chat/group0/", "/chat/group0/topics", "/chat/group0/messages", fmt.Sprintf("/chat/group0/messages?before=%d", last/2), fmt.Sprintf("/chat/group0/messages?after=%d", last/2),
		"/chat/group0/messages?topic=%23t1", "/chat/group0/messages?limit=200&view=page", "/status?chat_jid=telegram:-7",
	}
}

// BenchmarkPages reports how long each page takes over HTTP, as its median and its 95th percentile. The database has, besides
// messages, as many other rows as a large instance, and 10,000 that wait of each kind.
func BenchmarkPages(b *testing.B) {
	data := dataFolder(b)
	d := newBenchData(b, filepath.Join(data, "arizuko.db"))
	d.write()
	d.files(data)
	d.index()
	br := serve(b, data, append(stubDaemons(b), "POLL_INTERVAL=1h")...).operator()
	br.http.Timeout = time.Minute
	for _, address := range benchPages(d.start, int64(*benchMessages)) {
		target := strings.NewReplacer("$1", d.words[0], "$2", d.words[20], "$3", d.words[3000]).Replace(address)
		b.Run(address, func(b *testing.B) {
			measure(b, func() {
				a := br.get(target)
				away := a.status == http.StatusServiceUnavailable && strings.HasSuffix(target, "/context")
				if a.status != http.StatusOK && !away {
					b.Fatalf("%s: %d %.300s", target, a.status, a.body)
				}
			})
		})
	}
	d.exec(`DELETE FROM routes WHERE id > 500`) // as many as the editor takes
	form := d.editorForm()
	for _, do := range []string{"", "check", "up:500", "test", "replay"} {
		b.Run("/routes/edit "+do, func(b *testing.B) {
			form.Set("do", do)
			measure(b, func() {
				a := answer{}
				if do == "" {
					a = br.get("/routes/edit")
				} else {
					a = br.form("/routes/edit", form)
				}
				if a.status != http.StatusOK {
					b.Fatalf("%d %.300s", a.status, a.body)
				}
			})
		})
	}
}

// unmeasured are pages that read no rows but those of the login.
var unmeasured = []string{"/assets/*", "/healthz", "/readyz", "/metrics", "/login", "/chat", "/sw.js", "/offline"}

func TestBenchPages_HaveEachPage(t *testing.T) {
	p := serve(t, dataFolder(t))
	measured := map[string]bool{"/routes/edit": true} // with each of its buttons
	for _, address := range benchPages(time.Now(), 1000) {
		path, _, _ := strings.Cut(address, "?")
		at := chi.NewRouteContext()
		if !p.Router.Match(at, http.MethodGet, path) {
			t.Errorf("%s is no page", address)
		}
		measured[strings.Join(at.RoutePatterns, "")] = true
	}
	for _, pattern := range p.mounted(http.MethodGet) {
		if !measured[pattern] && !slices.Contains(unmeasured, pattern) {
			t.Errorf("%s is not measured", pattern)
		}
	}
}

// cpuTime is what this process has used of the processors: on a busy machine it says more than the time that passes.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure reports how long a request takes, and how much of the processors, client included.
func measure(b *testing.B, request func()) {
	b.Helper()
	var took []time.Duration
	used := cpuTime()
	for b.Loop() {
		began := time.Now()
		request()
		took = append(took, time.Since(began))
	}
	used = cpuTime() - used
	slices.Sort(took)
	b.ReportMetric(float64(used.Microseconds())/1000/float64(len(took)), "cpu-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// editorForm is the editor with the stored table and a message to test.
func (d *benchData) editorForm() url.Values {
	d.b.Helper()
	st := storetest.OpenAt(d.b, d.path, nil)
	routes, err := st.Routes(context.Background())
	if err != nil {
		d.b.Fatal(err)
	}
	form := url.Values{"digest": {routeapi.Digest(routes)}, "test_chat": {"telegram:-7"}, "test_sender": {"telegram:42"}}
	for i, r := range routes {
		for name, value := range map[string]string{
			"key": strconv.FormatInt(r.ID, 10), "seq": strconv.FormatInt(r.Seq, 10), "place": strconv.Itoa(i + 1), "match": r.Match, "target": r.Target,
			"impulse": string(r.Impulse),
		} {
			form.Add(name, value)
		}
	}
	return form
}

// index puts all rows into the full-text index, and logs how long that takes and how much room.
func (d *benchData) index() {
	d.b.Helper()
	st := storetest.OpenAt(d.b, d.path, nil)
	rows, worst, began := 0, time.Duration(0), time.Now()
	for more := true; more; {
		at := time.Now()
		err := st.Write(context.Background(), func(tx *store.Tx) (err error) {
			var n int
			n, more, err = tx.IndexMessages()
			rows += n
			return err
		})
		if err != nil {
			d.b.Fatal(err)
		}
		worst = max(worst, time.Since(at))
	}
	took := time.Since(began)
	var size, texts int64
	d.get(&size, `SELECT sum(octet_length(block)) FROM message_search_segments`)
	d.get(&texts, `SELECT sum(octet_length(content)) FROM messages`)
	d.b.Logf("%d rows with %d bytes of text indexed in %s, %.0f rows a second, the longest batch took %s; the index has %.0f bytes a message",
		rows, texts, took.Round(time.Millisecond), float64(rows)/took.Seconds(), worst.Round(time.Millisecond), float64(size)/float64(rows))
}

// BenchmarkCatchUp puts all messages into the full-text index as a dashd does that was upgraded, and reports how long that takes and how
// long a commit of another process takes meanwhile, beside one without it.
func BenchmarkCatchUp(b *testing.B) {
	data := dataFolder(b)
	d := newBenchData(b, filepath.Join(data, "arizuko.db"))
	d.exec(`BEGIN`)
	d.messages(d.start.UnixMilli())
	d.exec(`COMMIT`)
	d.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	before := d.commits(b, func() bool { return false })
	ctx, cancel := context.WithCancel(context.Background())
	indexed := make(chan error, 1)
	st := storetest.OpenAt(b, d.path, nil)
	began := time.Now()
	go func() { indexed <- (&indexer.Indexer{Store: st, Log: slog.New(slog.DiscardHandler)}).Run(ctx) }()
	during := d.commits(b, func() bool {
		lag, err := rows.CountSearchLag(ctx, st.Reader, 1000)
		if err != nil {
			b.Error(err)
		}
		return lag.Rows >= 1000
	})
	took := time.Since(began)
	cancel()
	if err := <-indexed; err != nil {
		b.Error(err)
	}
	b.ReportMetric(took.Seconds(), "catch-up-s")
	for name, took := range map[string][]time.Duration{"before": before, "during": during} {
		for _, percent := range []int{50, 99, 100} {
			at := took[min(len(took)*percent/100, len(took)-1)]
			b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, percent))
		}
	}
}

// commits measures the commits of one message every 20 ms, at least 200, as long as more says. The shortest is the first.
func (d *benchData) commits(b *testing.B, more func() bool) (took []time.Duration) {
	st := storetest.OpenAt(b, d.path, nil)
	for len(took) < 200 || more() {
		began := time.Now()
		err := st.Write(context.Background(), func(tx *store.Tx) error {
			_, _, err := tx.PutMessage(&msg.Message{ChatJID: "telegram:-1", Direction: msg.In, Content: "one more", ReceivedAt: began.UnixMilli()})
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a rate of messages, in a benchmark
	}
	slices.Sort(took)
	return took
}
