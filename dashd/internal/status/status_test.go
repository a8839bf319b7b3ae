package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	tele  = "telegram:-1"
	other = "telegram:-2"
	web   = "web:main"
)

const continues = "Session: continues with the next message"

// report is a report on a chat of group main in which nothing happens, with some lines changed or added. A line that
// begins with ^ comes first, and a field without a value is left out.
func report(changes ...string) string {
	lines := []string{"Group: main", "Topic: the default one", "Session: none yet, the next message starts one", "Now: nothing to do",
		"Healthy: dashd, gated, routd"}
	for _, change := range changes {
		field, value, _ := strings.Cut(change, ":")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, field+":") })
		switch first, isFirst := strings.CutPrefix(change, "^"); {
		case isFirst:
			lines = slices.Insert(lines, 0, first)
		case i < 0:
			lines = slices.Insert(lines, len(lines)-1, change)
		case value == "":
			lines = slices.Delete(lines, i, i+1)
		default:
			lines[i] = change
		}
	}
	return strings.Join(lines, "\n")
}

// The exact text of reports, then the fields. The chat's group is main, unless the report says that it has none.
func TestChat_EachState_Reported(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   Where
		seed func(*fixture)
		want string
		more string // group, topic, session, engaged_until, queue_place, waiting
	}{
		{"fresh web chat", Where{ChatJID: web}, nil, report(), `main "" null null null 0`},
		{"unknown chat", Where{ChatJID: tele}, nil, "Group: none yet", `null "" null null null 0`},
		{"a route for the sender alone", Where{ChatJID: tele, Sender: "telegram:42"}, func(r *fixture) {
			r.route("sender=telegram:42", "main")
			r.answered(tele, "s-1", minute)
		}, report(continues), `main "" s-1 null null 0`},
		{"running, with one piped after it", Where{ChatJID: web}, func(r *fixture) {
			run := r.run(r.turn(web, 14*second), 12*second)
			next := r.turn(web, 5*second)
			r.write(func(tx *store.Tx) error { return gatedtest.TakeTurn(tx, next.ID, run.ID, now) })
		}, report("Now: working on it for 12 s, 1 more after it"), `main "" null null 0 0`},
		{"queued after others", Where{ChatJID: web}, func(r *fixture) {
			r.run(r.turn(other, 9*second), 8*second)
			r.turn(other, 7*second)
			r.retryAt(r.turn(other, 6*second), now+second) // not due yet
			r.turn(web, 5*second)
			r.turn(web, 4*second, inTopic("#deploy"))
			r.turn(other, 3*second)
		}, report("Now: number 2 in the queue for a free agent, 1 more after it"), `main "" null null 2 0`},
		{"queued alone", Where{ChatJID: web}, func(r *fixture) { r.turn(web, 5*second) },
			report("Now: next in the queue for a free agent"),
			`main "" null null 1 0`},
		{"a tab of a web chat beside a busy one", Where{ChatJID: web, Topic: "#deploy"}, func(r *fixture) {
			r.engage(web, "#deploy", now-minute, now+minute)
			r.answered(web, "s-deploy", minute, inTopic("#deploy"))
			r.run(r.turn(web, 14*second), 12*second)
			r.retryAt(r.turn(web, 13*second, inTopic("#deploy")), now+25*second)
		}, report("Topic: #deploy", continues, "Now: failed, next attempt in 25 s", "Engaged: main answers everything here for another 60 s."),
			fmt.Sprintf(`main "#deploy" s-deploy %d 1 0`, now+minute)},
		{"a thread beside a busy one", Where{ChatJID: tele, ThreadID: "7"}, func(r *fixture) {
			r.answered(tele, "s-7", minute, inThread("7"))
			r.run(r.turn(tele, 14*second, inThread("8")), 12*second)
		}, report("Topic: this thread", continues), `main "7" s-7 null null 0`},
		{"a thread bound to a topic, a window open in it", Where{ChatJID: tele, ThreadID: "7"}, func(r *fixture) {
			r.write(func(tx *store.Tx) error { return gatedtest.BindThread(tx, tele, "7", "#deploy") })
			r.answered(tele, "s-9", minute, inTopic("#deploy"))
			r.engage(tele, "7", now-minute, now+4*minute+2*second)
			r.engage(tele, "", now-minute, now+9*minute)
		}, report("Topic: #deploy", continues, "Engaged: main answers everything here for another 4 min."),
			fmt.Sprintf(`main "#deploy" s-9 %d null 0`, now+4*minute+2*second)},
		{"a window in a group where privacy mode is on", Where{ChatJID: tele}, func(r *fixture) {
			r.answered(tele, "s-1", minute)
			r.engage(tele, "", now-minute, now+9*minute)
			r.write(func(tx *store.Tx) error {
				if err := tx.PutChat(tele, msg.ChatGroup, "Dev", now); err != nil {
					return err
				}
				return tx.PutCursor("teled", msg.PrivacyMode, "true")
			})
		}, report(continues, "Engaged: main answers mentions and replies here (privacy mode keeps all else from the bot, unless it is an administrator) for another 9 min."),
			fmt.Sprintf(`main "" s-1 %d null 0`, now+9*minute)},
		{"answers that wait for an adapter that never ran", Where{ChatJID: tele}, func(r *fixture) {
			for range 2 {
				r.outbound(tele, 40*second)
			}
			r.outbound(other, 40*second)
			r.outbound(tele, second) // is on its way
		}, report("2 messages wait to be sent, the oldest for 40 s: teled has never run with this data folder."),
			`main "" null null null 0`},
		{"the thread of a fork that is open", Where{ChatJID: tele, ThreadID: "7"}, func(r *fixture) {
			r.answered(tele, "s-9", minute, inTopic("#deploy#fix"))
			r.fork("main", "#deploy#fix", "7")
		}, report("Topic: #deploy#fix", continues), `main "#deploy#fix" s-9 null null 0`},
		{"the thread of a fork that has ended", Where{ChatJID: tele, ThreadID: "7"}, func(r *fixture) {
			r.answered(tele, "s-1", minute, inTopic("#deploy"))
			r.fork("main", "#deploy#fix", "7")
			r.write(func(tx *store.Tx) error { return tx.EndFork(tele, "#deploy#fix", now) })
		}, report("Topic: #deploy", continues), `main "#deploy" s-1 null null 0`},
		{"the thread of another group's fork", Where{ChatJID: tele, ThreadID: "7"}, func(r *fixture) {
			r.answered(tele, "s-7", minute, inThread("7"))
			r.fork("other", "#fix", "7")
		}, report("Topic: this thread", continues), `main "7" s-7 null null 0`},
		{"pinned to a group and a topic, which ended the window", Where{ChatJID: tele, ThreadID: "7"}, func(r *fixture) {
			r.group("acme/eng")
			r.answered(tele, "s-1", 2*minute, inThread("7"))
			r.engage(tele, "7", now-2*minute, now+minute)
			r.pin(tele, "acme/eng", "#deploy", minute)
		}, report("Group: acme/eng (pinned)", "Topic: #deploy (pinned)"), `acme/eng "#deploy" null null null 0`},
		{"a question that waits for its answer", Where{ChatJID: tele}, func(r *fixture) {
			turn := r.turn(tele, 3*minute)
			r.run(turn, 3*minute)
			r.write(func(tx *store.Tx) error {
				_, err := gatedtest.PutAsk(tx, turn, &gatedtest.Question{AskID: "q", Question: "Which?", Options: []string{"a", "b"}, ExpiresAt: now + minute,
					Who: msg.Who{Senders: []string{"telegram:7"}, Label: "Ada"}}, now-second)
				return err
			})
		}, report("Now: waiting for Ada to answer a question"), `main "" null null 0 0`},
		{"an agent without a sign", Where{ChatJID: tele}, func(r *fixture) { r.run(r.turn(tele, 3*minute), 3*minute) },
			report("Now: working on it for 3 min, no sign of the agent or its model for 3 min"),
			`main "" null null 0 0`},
		{"an agent at work elsewhere", Where{ChatJID: tele}, func(r *fixture) {
			r.run(r.turn(other, minute), minute)
			r.turn(tele, second)
		}, report("Now: next in the queue: its agent works for another chat or thread"), `main "" null null 1 0`},
		{"rows that wait, and the one that asks", Where{ChatJID: tele}, func(r *fixture) {
			r.inbound(tele, 30*second)
			r.inbound(tele, 20*second)
			r.inbound(tele, second)
			r.inbound(other, 2*minute)
		}, report("2 messages wait for a decision, the oldest for 30 s."), `main "" null null null 2`},
		{"a row that waits too long", Where{ChatJID: tele}, func(r *fixture) { r.inbound(tele, 2*minute) }, "1 message has waited for a decision for 2 min.\nGroup: none yet", `null "" null null null 1`},
		{"daemons that cannot write", Where{ChatJID: tele}, func(r *fixture) {
			for i, name := range []string{"gated", "routd", "onbod", "dashd", "teled"} {
				r.beat(name, daemon.Connected, 2*minute+int64(i)*second)
			}
			r.beat("slakd", daemon.Stopped, 3*60*minute)
		}, report("^No daemon has written to the database for 2 min: `dashd doctor` names what keeps it locked, or what else is wrong.\nslakd was stopped 3 h ago.", "Healthy:"),
			`main "" null null null 0`},
		{"daemons that are not well", Where{ChatJID: tele}, func(r *fixture) {
			r.beat("gated", daemon.Connected, 3*minute)
			r.beat("discd", daemon.BadCredentials, second)
			r.beat("onbod", daemon.Stopped, 3*60*minute)
			r.beat("slakd", daemon.Degraded, second)
			r.beat("teled", daemon.Connecting, second)
		}, report("^discd cannot log in: its platform refuses the credentials.\ngated does not run: its last heartbeat was 3 min ago.\nonbod was stopped 3 h ago.\n2 more not healthy.", "Healthy: dashd, routd"),
			`main "" null null null 0`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t)
			r.healthy()
			if tc.at.Sender == "" && !strings.Contains(tc.want, "Group: none") {
				r.route("chat_jid="+tc.at.ChatJID, "main")
			}
			if tc.seed != nil {
				tc.seed(r)
			}
			got := r.chat(tc.at)
			if diff := cmp.Diff(tc.want, got.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			more := fmt.Sprintf("%s %q %s %s %s %d", show(got.Group), got.Topic, show(got.Session),
				show(got.EngagedUntil), show(got.QueuePlace), got.Waiting)
			if more != tc.more {
				t.Errorf("fields %s, want %s", more, tc.more)
			}
		})
	}
}

func TestChat_ExpiredWindow_NotEngaged(t *testing.T) {
	r := newFixture(t)
	r.engage(tele, "past", now-minute, now)
	r.engage(tele, "ended", now-2*minute, now+minute)
	r.sql(`UPDATE chat_reply_state SET ended_at = ? WHERE topic = 'ended'`, now-minute)
	r.engage(tele, "again", now, now+minute)
	r.sql(`UPDATE chat_reply_state SET ended_at = ? WHERE topic = 'again'`, now-minute)
	for place, want := range map[string]bool{"past": false, "ended": false, "again": true} {
		if got := r.chat(Where{ChatJID: tele, ThreadID: place}).EngagedUntil; (got != nil) != want {
			t.Errorf("%s: engaged until %s", place, show(got))
		}
	}
}

// Costs are for operators: gated says that one asks.
func TestChat_OperatorAsks_SaysWhatWasSpent(t *testing.T) {
	r := newFixture(t)
	r.healthy()
	r.group("main")
	r.route("chat_jid="+tele, "main")
	working := r.turn(tele, minute)
	r.run(working, minute)
	day := time.UnixMilli(now).Local()
	r.write(func(tx *store.Tx) error {
		return gatedtest.AddUsage(tx, working.ID, agentproto.Usage{CostUSD: 0.25}, day.Format(time.DateOnly))
	})
	r.sql(`INSERT INTO spend (day, folder, chat_jid, cost_usd) VALUES (?, 'main', 'web:main', 1), (?, 'main', 'web:main', 50), (?, 'other', 'web:other', 7)`,
		day.Format(time.DateOnly), day.AddDate(0, 0, -1).Format(time.DateOnly), day.Format(time.DateOnly))
	if text := r.chat(Where{ChatJID: tele, Spend: true}).Text; !strings.Contains(text, "Spent today by main: $1.25, by the turn at work: $0.25.") {
		t.Error(text)
	}
	if text := r.chat(Where{ChatJID: tele}).Text; strings.Contains(text, "$") {
		t.Error(text)
	}
	r.sql(`UPDATE spend SET cost_usd = 0, input_tokens = 0, output_tokens = 0`)
	if text := r.chat(Where{ChatJID: tele, Spend: true}).Text; !strings.Contains(text, "Spent today by main: nothing reported") {
		t.Error(text)
	}
	r.sql(`UPDATE spend SET output_tokens = 5 WHERE chat_jid = 'web:main'`)
	if text := r.chat(Where{ChatJID: tele, Spend: true}).Text; !strings.Contains(text, "Spent today by main: 5 tokens, dollars not reported") {
		t.Error(text)
	}
}

func TestChat_TurnWaits_SaysWhatFor(t *testing.T) {
	for waits, want := range map[msg.WaitsFor]string{
		msg.WaitsRetry:   "Now: failed, next attempt in 25 s\n",
		msg.WaitsFiles:   "Now: attachments are being downloaded or transcribed, I begin at the latest in 25 s\n",
		msg.WaitsMachine: "Now: the agent cannot be started right now, next attempt in 25 s\n",
		msg.WaitsProbe:   "Now: the agent fails for all messages, next attempt in 25 s\n",
	} {
		t.Run(string(waits), func(t *testing.T) {
			r := newFixture(t)
			r.healthy()
			r.route("chat_jid="+tele, "main")
			turn := r.turn(tele, minute)
			r.write(func(tx *store.Tx) error {
				return gatedtest.RequeueTurn(tx, turn.ID, gatedtest.Requeue{WaitsFor: waits, NotBefore: now + 25*second})
			})
			if text := r.chat(Where{ChatJID: tele}).Text; !strings.Contains(text, want) {
				t.Errorf("the report has no line %q:\n%s", want, text)
			}
		})
	}
}

func TestChat_Backlog_CountedUpToALimit(t *testing.T) {
	r := newFixture(t)
	r.healthy()
	r.route("chat_jid="+tele, "main")
	r.turn(tele, minute)
	backlog := func(count int) {
		r.sql(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?1)
			INSERT INTO turns (kind, folder, chat_jid, topic, thread_id, place, trigger_message_id, surface, ceiling, state, created_at)
			SELECT kind, folder, chat_jid, topic, thread_id, place, trigger_message_id, surface, ceiling, state, created_at
			FROM n, turns WHERE turns.id = 1`, count)
	}
	backlog(999)
	if text := r.chat(Where{ChatJID: tele}).Text; !strings.Contains(text, "Now: next in the queue for a free agent, 999 more after it\n") {
		t.Error(text)
	}
	backlog(2000)
	if text := r.chat(Where{ChatJID: tele}).Text; !strings.Contains(text, "Now: next in the queue for a free agent, 1000 or more after it\n") {
		t.Error(text)
	}
	facts, err := r.status.Instance(t.Context())
	if err != nil || facts.QueuedCount != 3000 || len(facts.Queued) != maxListed {
		t.Errorf("%d of %d listed, %v", len(facts.Queued), facts.QueuedCount, err)
	}
}

func TestChat_RequestPending_Said(t *testing.T) {
	f := newFixture(t)
	f.healthy()
	f.sql(`INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('ABCD-1234', 'telegram:5', 'pending', 1)`)
	for chat, want := range map[string][2]string{
		"telegram:5": {"Group: none yet. Request ABCD-1234 waits for an operator to approve it.\n", ""},
		"telegram:6": {"Group: none yet\n", "To connect it to a group: routd routes add --match 'chat_jid=telegram:6' --target GROUP"},
	} {
		report, err := f.status.Chat(t.Context(), Where{ChatJID: chat})
		if err != nil || !strings.Contains(report.Text+"\n", want[0]) || report.Advice != want[1] {
			t.Errorf("%s: %v %s, advice %q", chat, err, report.Text, report.Advice)
		}
	}
	f.sql(`UPDATE onboarding_requests SET folder = 'f1', decided_by = 'telegram:9' WHERE code = 'ABCD-1234'`)
	want := "Group: none yet. Request ABCD-1234 is approved: the chat is connected as soon as routd answers."
	if report, err := f.status.Chat(t.Context(), Where{ChatJID: "telegram:5"}); err != nil || report.Text != want {
		t.Errorf("approved: %v %s", err, report.Text)
	}
	f.route("chat_jid=telegram:5", "main") // a route was added by hand
	if report, err := f.status.Chat(t.Context(), Where{ChatJID: "telegram:5"}); err != nil || strings.Contains(report.Text, "ABCD") {
		t.Errorf("connected: %v %s", err, report.Text)
	}
}
