package decide

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

// held is one row as the gate takes it.
type held struct {
	at     int64 // received, unix ms
	weight int
}

func fold(rows []held, i msg.Impulse) (g impulseGate) {
	for n, r := range rows {
		g.add(int64(n+1), r.at, r.weight, i, "", 0)
	}
	return g
}

func TestGate_DueAt(t *testing.T) {
	standard := msg.Impulse{Threshold: 100, MaxHoldMS: 1000}
	quiet := msg.Impulse{Threshold: 100, MaxHoldMS: 1000, QuietMS: 50}
	for _, tt := range []struct {
		name string
		i    msg.Impulse
		rows []held
		due  int64
	}{
		{"nothing held", standard, nil, 0},
		{"a message", standard, []held{{500, 100}}, 500},
		{"a reaction waits for the longest hold", standard, []held{{500, 0}}, 1500},
		{"weights add up", standard, []held{{500, 60}, {600, 60}}, 600},
		{"too light together", standard, []held{{500, 40}, {600, 40}}, 1500},
		{"a message after a reaction", standard, []held{{500, 0}, {700, 100}}, 700},
		{"silence is waited for", quiet, []held{{500, 100}}, 550},
		{"each line begins it again", quiet, []held{{500, 100}, {540, 100}, {580, 100}}, 630},
		{"but not beyond the longest hold", quiet, []held{{500, 100}, {1490, 100}}, 1500},
		{"a row from before the first", standard, []held{{500, 50}, {400, 50}}, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := fold(tt.rows, tt.i)
			if got := g.DueAt(); got != tt.due {
				t.Errorf("due at %d, want %d", got, tt.due)
			}
			if tt.due != 0 && (g.due(tt.due-1) || !g.due(tt.due)) {
				t.Errorf("due before %d: %v, then: %v", tt.due, g.due(tt.due-1), g.due(tt.due))
			}
		})
	}
}

func TestGate_OldestRowsSettings_HoldForAll(t *testing.T) {
	var g impulseGate
	g.add(1, 500, 0, msg.Impulse{Threshold: 100, MaxHoldMS: 1000}, "", 0)
	g.add(2, 510, 50, msg.Impulse{Threshold: 10, MaxHoldMS: 1}, "", 0)
	if got := g.DueAt(); got != 1500 {
		t.Errorf("due at %d, want 1500", got)
	}
}

// TestGate_AnyRows holds the fold to the README's promise: no row waits
// beyond the longest hold of the first, none is released before it was there,
// a further row never makes the rest wait for longer than that, and a restart,
// which folds the same rows again, comes to the same.
func TestGate_AnyRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := msg.Impulse{
			Threshold: rapid.IntRange(0, 300).Draw(t, "threshold"),
			MaxHoldMS: rapid.Int64Range(0, 10_000).Draw(t, "max hold"),
			QuietMS:   rapid.Int64Range(0, 500).Draw(t, "quiet"),
		}
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) held {
			return held{rapid.Int64Range(1, 20_000).Draw(t, "at"), rapid.SampledFrom([]int{0, 10, 50, 100}).Draw(t, "weight")}
		}), 1, 20).Draw(t, "rows")
		slices.SortStableFunc(rows, func(a, b held) int { return int(a.at - b.at) })
		g, first := fold(rows, i), rows[0].at
		due := g.DueAt()
		if due > first+i.MaxHoldMS || due < first {
			t.Fatalf("due at %d: held from %d for at most %d", due, first, i.MaxHoldMS)
		}
		if g.Weight < i.Threshold && due != first+i.MaxHoldMS {
			t.Fatalf("released at %d with weight %d of %d", due, g.Weight, i.Threshold)
		}
		if g.ThroughID != int64(len(rows)) || g.Count != len(rows) {
			t.Fatalf("%d rows folded: %+v", len(rows), g)
		}
		var again impulseGate // of a gated that was restarted
		for n, r := range rows {
			again.add(int64(n+1), r.at, r.weight, i, "", 0)
		}
		if again.DueAt() != due || again.Weight != g.Weight {
			t.Fatalf("after a restart %+v, before %+v", again, g)
		}
	})
}

func TestNewRow_Kind(t *testing.T) {
	t.Parallel()
	from := func(kind msg.ReturnKind) *msg.ReturnAddress { return &msg.ReturnAddress{Kind: kind} }
	for name, tt := range map[string]struct {
		m    msg.Message
		want Kind
	}{
		"text":                    {msg.Message{Verb: msg.VerbMessage, Content: "hi"}, KindText},
		"mention":                 {msg.Message{Verb: msg.VerbMention, Content: "@ari hi"}, KindText},
		"reply":                   {msg.Message{Verb: msg.VerbReply, Content: "hi"}, KindText},
		"bare token":              {msg.Message{Verb: msg.VerbMessage, Content: "#fix"}, KindText},
		"injected text":           {msg.Message{Verb: msg.VerbMessage, Content: "hi", ForwardedFrom: from(msg.Injection)}, KindText},
		"command":                 {msg.Message{Verb: msg.VerbMessage, Content: "/stop"}, KindCommand},
		"command for us":          {msg.Message{Verb: msg.VerbMention, Content: "/stop@ari"}, KindCommand},
		"command for another bot": {msg.Message{Verb: msg.VerbMessage, Content: "/stop@other"}, KindText},
		"command of a bot":        {msg.Message{Verb: msg.VerbMessage, Content: "/stop", IsBot: true}, KindText},
		"late command":            {msg.Message{Verb: msg.VerbMessage, Content: "/stop", ReceivedAt: 5000}, KindText},
		"command with a file":     {msg.Message{Verb: msg.VerbMessage, Content: "/help", PendingFiles: 1}, KindText},
		"new with a file":         {msg.Message{Verb: msg.VerbMessage, Content: "/new", PendingFiles: 1}, KindCommand},
		"injected command":        {msg.Message{Verb: msg.VerbMessage, Content: "/new", ForwardedFrom: from(msg.Injection)}, KindCommand},
		"command of Slack":        {msg.Message{Verb: msg.VerbMessage, Content: "!new", ChatJID: "slack:C1"}, KindCommand},
		"on a further account":    {msg.Message{Verb: msg.VerbMessage, Content: "!new", ChatJID: "slack+work:C1"}, KindCommand},
		"Slack's sign elsewhere":  {msg.Message{Verb: msg.VerbMessage, Content: "!new", ChatJID: "telegram+work:5"}, KindText},
		"unknown command":         {msg.Message{Verb: msg.VerbMessage, Content: "/what"}, KindText},
		"reaction":                {msg.Message{Verb: msg.VerbReaction, Content: "/stop"}, KindEvent},
		"join":                    {msg.Message{Verb: msg.VerbJoin}, KindEvent},
		"verb to come":            {msg.Message{Verb: "wave"}, KindEvent},
		"edit":                    {msg.Message{Verb: msg.VerbEdit, Content: "/stop"}, KindChange},
		"deletion":                {msg.Message{Verb: msg.VerbDelete}, KindChange},
		"vote":                    {msg.Message{Verb: msg.VerbVote}, KindBallot},
		"end of a poll":           {msg.Message{Verb: msg.VerbPollEnd}, KindBallot},
		"pressed button":          {msg.Message{Verb: msg.VerbAnswer}, KindAnswer},
		"delegation":              {msg.Message{Verb: msg.VerbMessage, Content: "/stop", ForwardedFrom: from(msg.Delegation)}, KindForwarded},
		"answer of a group":       {msg.Message{Verb: msg.VerbMessage, ForwardedFrom: from(msg.Answer)}, KindForwarded},
	} {
		tt.m.ChatJID = cmp.Or(tt.m.ChatJID, chat)
		if r := NewRow(&tt.m, 1000, []string{"ari"}, nil); r.Kind != tt.want || (r.Command != nil) != (tt.want == KindCommand) {
			t.Errorf("%s: kind %d with command %+v, want %d", name, r.Kind, r.Command, tt.want)
		}
	}
}

// TestKind_WhoIsAsked: a row is decided on arrival or waits at the gate; routd is asked about the rows that it routes,
// and about the group of a command.
func TestKind_WhoIsAsked(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]struct{ acts, routed bool }{
		KindText: {false, true}, KindEvent: {false, true}, KindMention: {false, true}, KindForwarded: {false, false},
		KindCommand: {true, true}, KindChange: {true, false}, KindBallot: {true, false}, KindAnswer: {true, false},
		KindLeak: {true, false}, KindBroken: {true, false},
	} {
		r := row(1, "a", func(r *Row) { r.Kind = kind })
		if got := r.Lookup(&msg.Chat{}) != nil; kind.Acts() != want.acts || got != want.routed {
			t.Errorf("kind %d: acts %v, routd is asked %v", kind, kind.Acts(), got)
		}
	}
}
