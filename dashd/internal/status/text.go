package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

const (
	// maxWaiting is how long a row may wait before that counts as a problem.
	maxWaiting = time.Minute
	// maxProblems bounds the lines about daemons, so that the rest stays on a phone's screen.
	maxProblems = 3
)

// text words the report on a chat: the problems first. Of the daemons nothing is said in a chat without a
// group: any stranger may ask there.
func (c *chat) text() string {
	lines, healthy := health(c.daemons, c.now)
	if c.group == "" {
		lines, healthy = nil, nil
	}
	waiting := waits(c.waiting, "for a decision", c.now)
	late := isLate(c.waiting, c.now)
	if late {
		lines = append(lines, waiting)
	}
	lines = append(lines, c.identity()...)
	if c.group != "" || c.work.place != nil {
		lines = append(lines, "Now: "+c.work.text(c.now))
	}
	if c.group != "" && c.unsent.Rows > 0 {
		line := strings.TrimSuffix(waits(c.unsent, "to be sent", c.now), ".")
		lines = append(lines, line+": "+c.daemons.Unsent(c.ChatJID, c.now)+".")
	}
	if c.spent != nil {
		line := fmt.Sprintf("Spent today by %s: %s", cli.PrintableLine(c.group), c.spent.today.Words())
		if c.spent.turn.Output > 0 || c.spent.turn.CostUSD > 0 {
			line += ", by the turn at work: " + c.spent.turn.Words()
		}
		lines = append(lines, line+".")
	}
	if waiting != "" && !late {
		lines = append(lines, waiting)
	}
	if c.engaged.Until != 0 {
		what := "everything here"
		if c.privacy {
			what = "mentions and replies here (privacy mode keeps all else from the bot, unless it is an administrator)"
		}
		lines = append(lines, fmt.Sprintf("Engaged: %s answers %s for another %s.",
			cli.PrintableLine(c.engaged.Folder), what, facts.Span(c.engaged.Until-c.now)))
	}
	return strings.Join(append(lines, healthy...), "\n")
}

// identity names the group that answers in the chat, and its topic and session.
func (c *chat) identity() []string {
	switch {
	case c.request != nil && c.request.Noted():
		return []string{"Group: none yet. Request " + cli.PrintableLine(c.request.Code) +
			" is approved: the chat is connected as soon as routd answers."}
	case c.request != nil:
		return []string{"Group: none yet. Request " + cli.PrintableLine(c.request.Code) +
			" waits for an operator to approve it."}
	case c.group == "":
		return []string{"Group: none yet"}
	}
	topic, session := c.topic, "continues with the next message"
	switch {
	case topic == "":
		topic = "the default one"
	case topic == c.ThreadID && c.info.StickyTopic == "":
		topic = "this thread"
	}
	if c.session == "" {
		session = "none yet, the next message starts one"
	}
	return []string{
		"Group: " + cli.PrintableLine(c.group) + pinned(c.info.StickyGroup == c.group),
		"Topic: " + cli.PrintableLine(topic) + pinned(c.info.StickyTopic != ""),
		"Session: " + session,
	}
}

// advice says how a chat without a group is connected. It is no part of the text, which strangers read, too.
func (c *chat) advice() string {
	if c.group != "" || c.request != nil {
		return ""
	}
	return "To connect it to a group: " + facts.ConnectCommand(c.ChatJID)
}

func pinned(is bool) string {
	if is {
		return " (pinned)"
	}
	return ""
}

// text words the progress of the last message.
func (w work) text(now int64) string {
	var text string
	switch {
	case w.place == nil:
		return "nothing to do"
	case w.asked != "":
		text = "waiting for " + cli.PrintableLine(w.asked) + " to answer a question"
	case *w.place == 0 && w.begun == 0:
		text = "working on it"
	case *w.place == 0:
		text = "working on it for " + facts.Span(now-w.begun)
	case w.retryAt != 0:
		text = w.waiting() + " in " + facts.Span(w.retryAt-now)
	case *w.place == 1:
		text = "next in the queue" + w.queuedFor()
	default:
		text = fmt.Sprintf("number %d in the queue", *w.place) + w.queuedFor()
	}
	if silent := now - w.saidAt; w.saidAt != 0 && w.asked == "" && silent > maxWaiting.Milliseconds() {
		text += ", no sign of the agent or its model for " + facts.Span(silent)
	}
	switch {
	case w.open > maxCounted:
		text += fmt.Sprintf(", %d or more after it", maxCounted)
	case w.open > 1:
		text += fmt.Sprintf(", %d more after it", w.open-1)
	}
	return text
}

// queuedFor says why a queued turn that may start has not started yet.
func (w work) queuedFor() string {
	if w.another {
		return ": its agent works for another chat or thread"
	}
	return " for a free agent"
}

// waiting says why the oldest queued turn does not start before a time.
func (w work) waiting() string {
	switch w.waits {
	case msg.WaitsFiles:
		return "attachments are being downloaded or transcribed, I begin at the latest"
	case msg.WaitsMachine:
		return "the agent cannot be started right now, next attempt"
	case msg.WaitsProbe:
		return "the agent fails for all messages, next attempt"
	}
	return "failed, next attempt"
}

// text words the report on the instance: the problems first.
func (f Facts) text() string {
	lines, healthy := health(f.Daemons, f.Now)
	var onTime []string
	for _, line := range []struct {
		rows.Waiting
		what string
	}{{f.Inbound, "for a decision"}, {f.Outbound, "to be sent"}} {
		switch {
		case isLate(line.Waiting, f.Now):
			lines = append(lines, waits(line.Waiting, line.what, f.Now))
		case line.Rows > 0:
			onTime = append(onTime, waits(line.Waiting, line.what, f.Now))
		}
	}
	running, queue := "none", "empty"
	if f.RunningCount > 0 {
		since := cmp.Or(f.Running[0].StartedAt, f.Running[0].CreatedAt)
		running = strconv.Itoa(f.RunningCount) + ", the oldest for " + facts.Span(f.Now-since)
	}
	if f.QueuedCount > 0 {
		queue = facts.Count(f.QueuedCount, "turn", "turns") + ", the oldest for " +
			facts.Span(f.Now-f.Queued[0].CreatedAt)
	}
	lines = append(lines, "Running turns: "+running, "Queue: "+queue)
	return strings.Join(slices.Concat(lines, onTime, healthy), "\n")
}

// unwritten returns the time since the newest heartbeat, in ms, if all daemons are silent though dashd runs; 0 if one
// is not.
func unwritten(daemons facts.Daemons, now int64) int64 {
	if dashd := daemons["dashd"]; dashd == nil || dashd.State() == daemon.Stopped {
		return 0
	}
	var newest int64
	for _, d := range daemons {
		if d.State() == daemon.Stopped {
			continue
		}
		if !isSilent(d.Trouble(now)) {
			return 0
		}
		newest = max(newest, d.HeartbeatAt)
	}
	return now - newest
}

// isSilent reports whether a daemon's trouble is that it has ended without reporting that.
func isSilent(trouble string) bool { return strings.HasPrefix(trouble, facts.Silent) }

// health returns a line for each daemon that has a problem, one if none can write, and one that names all others.
func health(daemons facts.Daemons, now int64) (problems, healthy []string) {
	var names []string
	more, stuck := 0, unwritten(daemons, now)
	if stuck > 0 {
		problems = append(problems, "No daemon has written to the database for "+facts.Span(stuck)+
			": `dashd doctor` names what keeps it locked, or what else is wrong.")
	}
	for _, key := range slices.Sorted(maps.Keys(daemons)) {
		name, trouble := cli.PrintableLine(key), daemons[key].Trouble(now)
		switch {
		case trouble == "":
			names = append(names, name)
		case stuck > 0 && isSilent(trouble):
		case len(problems) == maxProblems:
			more++
		default:
			problems = append(problems, name+" "+trouble+".")
		}
	}
	if more > 0 {
		problems = append(problems, fmt.Sprintf("%d more not healthy.", more))
	}
	if names != nil {
		healthy = []string{"Healthy: " + strings.Join(names, ", ")}
	}
	return problems, healthy
}

func isLate(w rows.Waiting, now int64) bool {
	return w.Rows > 0 && now-w.Since > maxWaiting.Milliseconds()
}

// waits words how many rows wait and how long, "" for none.
func waits(w rows.Waiting, what string, now int64) string {
	age := facts.Span(now - w.Since)
	switch w.Rows {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 message has waited %s for %s.", what, age)
	}
	return fmt.Sprintf("%d messages wait %s, the oldest for %s.", w.Rows, what, age)
}
