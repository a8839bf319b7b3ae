package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	diffs "github.com/google/go-cmp/cmp"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

const (
	chat    = "telegram:1"
	now     = int64(1_000_000_000)
	maxHold = 60_000
)

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := diffs.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func impulse() msg.Impulse { return msg.DefaultImpulse(100, maxHold*time.Millisecond) }

// row is a message that routd routes to main.
func row(id int64, text string, change ...func(*Row)) Row {
	r := Row{
		Message: &msg.Message{
			ID: id, ChatJID: chat, PlatformID: fmt.Sprint("p", id), Direction: msg.In, Sender: "telegram:7", Verb: msg.VerbMessage,
			Content: text, Timestamp: now, ReceivedAt: now,
		},
		Known: true, Post: fmt.Sprint("p", id),
		Answer: routeapi.Answer{
			ID: id, Action: routeapi.Trigger, Folder: "main", Home: "main", Reason: msg.ReasonRoute, Impulse: impulse(), Surface: "telegram-dm",
		},
	}
	for _, f := range change {
		f(&r)
	}
	if r.Kind == 0 {
		r.Kind = KindOf(r.Message)
	}
	return r
}

func verb(v string) func(*Row)     { return func(r *Row) { r.Verb = v } }
func unanswered(r *Row)            { r.Known, r.Answer = false, routeapi.Answer{} }
func quiet(r *Row)                 { r.Answer.Impulse.QuietMS = 5000 }
func keyed(key string) func(*Row)  { return func(r *Row) { r.GroupKey = key } }
func received(at int64) func(*Row) { return func(r *Row) { r.ReceivedAt, r.Timestamp = at, at } }
func observed(r *Row)              { r.Answer.Action, r.Answer.Reason = routeapi.Observe, msg.ReasonRouteObserve }
func ignored(r *Row) {
	r.Answer = routeapi.Answer{Action: routeapi.Builtin, Target: "builtin:drop", Reason: msg.ReasonBuiltinDrop}
}
func registered(folder string) bool { return folder == "main" || folder == "main/eng" }
func change(c Change) func(*Row)    { return func(r *Row) { r.Kind, r.Change = KindChange, &c } }
func fires(r *Row)                  { r.Kind = KindMention }
func answer(a routeapi.Answer) func(*Row) {
	return func(r *Row) { a.Impulse = impulse(); r.Answer = a }
}

// closed is a group that admits another sender than the rows', operated one that another one operates, noPins one that
// only operators pin.
var (
	closed   = &groupconfig.Members{Roles: groupconfig.Roles{Ask: groupconfig.Role{{Who: "telegram:42"}}}}
	operated = &groupconfig.Members{Roles: groupconfig.Roles{Operate: groupconfig.Role{{Who: "telegram:42"}}}}
	noPins   = &groupconfig.Members{NoPins: true}
)

func to(m *groupconfig.Members) func(*Row) { return func(r *Row) { r.Home, r.Group = m, m } }
func engaged(r *Row)                       { r.Answer.Engaged, r.Answer.Reason = true, msg.ReasonEngaged }
func operator(r *Row)                      { r.Operator = true }
func foreign(r *Row)                       { r.Foreign = true }

// left is a row whose sender has so many turns left, of two.
func left(n int) func(*Row) {
	return func(r *Row) {
		r.Group, r.Quota = &groupconfig.Members{Rate: 2}, Quota{Left: n, NextAt: now + 90_000}
	}
}

func rateReply(row int64) string {
	return fmt.Sprintf("Reply{Row:%d Source:notice Text:You have reached this group's limit of 2 answers an hour. "+
		"Please write again in 2 minutes.}", row)
}

func command(r *Row) {
	made := NewRow(r.Message, 86_400_000, []string{"ari"}, map[string]bool{"telegram:9": true})
	r.Kind, r.Command, r.Old, r.Operator = made.Kind, made.Command, made.Old, made.Operator
	if r.Command != nil {
		r.Answer.Action, r.Answer.Reason, r.Answer.Folder = routeapi.None, "", ""
	}
}

// facts are those of a chat with rows, whose pins and prefixes are parsed.
func facts(rows ...Row) *Facts {
	f := &Facts{
		Now: now, Chat: msg.Chat{JID: chat, Kind: msg.ChatDM}, HasChat: true, Rows: rows, RetryMS: 2000, MaxAge: 86_400_000, Default: impulse(),
	}
	joinGroups(f.Rows, f.Rows)
	for i := range f.Rows {
		r := &f.Rows[i]
		r.Pin, r.Prefix = FindPin(r, &f.Chat, registered), FindPrefix(r, registered)
		f.Last = max(f.Last, r.ID)
	}
	return f
}

// joinGroups makes rows those of their groups, of which all are stored.
func joinGroups(rows, all []Row) {
	var stored []*msg.Message
	for i := range all {
		stored = append(stored, all[i].Message)
	}
	for i := range rows {
		r := &rows[i]
		group := slices.DeleteFunc(slices.Clone(stored), func(m *msg.Message) bool { return m.GroupKey != r.GroupKey })
		l := Summarize(r.Message, group)
		if l != nil && l.CommandRow != nil {
			head := NewRow(l.CommandRow, 86_400_000, []string{"ari"}, nil)
			l.Command = head.Command
		}
		r.Join(l)
	}
}

// said prints effects, one a line, short enough for a table.
func said(effects []Effect) string {
	var lines []string
	for _, e := range effects {
		switch e := e.(type) {
		case Decide:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s/%s %s", e.Row, e.Disposition, e.Reason, e.RoutedTo)))
		case StoreTurn:
			var rows []string
			for _, entry := range e.Entries {
				text := fmt.Sprint(entry.Row)
				if entry.Derive.Source != "" {
					text += "=" + entry.Derive.Text
				}
				rows = append(rows, text)
			}
			lines = append(lines, fmt.Sprintf("turn %s%s [%s]", e.Turn.Folder, e.Turn.Topic, strings.Join(rows, " ")))
		default:
			lines = append(lines, fmt.Sprintf("%T%+v", e, e))
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), "decide.", "")
}

// rowsOf are the rows that effects say something about, in order, each as often as it is said.
func rowsOf(effects []Effect) (all []int64) {
	for _, e := range effects {
		switch s := e.(type) {
		case Decide, AskService, OpenRequest, Hold, Wait:
			all = append(all, e.Of())
		case StoreTurn:
			for _, entry := range s.Entries {
				if entry.Derive.Source == "" {
					all = append(all, entry.Row)
				}
			}
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}
