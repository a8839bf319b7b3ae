package rows_test

import (
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// voiceTurn stores a voice note beside a picture, and a turn that waits for its transcript until 60000.
func voiceTurn(t *testing.T, s *store.Store) (m *msg.Message, turn *msg.Turn) {
	t.Helper()
	m = &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Sender: "telegram:1", Timestamp: 1, ReceivedAt: 1, Source: "teled", Attachments: []msg.Attachment{
		{Name: "a.png", MIME: "image/png", Path: "media/1"}, {Name: "v.ogg", MIME: "audio/ogg", Path: "media/2", Duration: 3}, {Name: "lost.ogg", MIME: "audio/ogg", Error: "too large"},
	}}
	storetest.Write(t, s, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		turn = &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: m.ChatJID, TriggerMessageID: m.ID, State: msg.TurnQueued, CreatedAt: 1, WaitsFor: msg.WaitsFiles, NotBefore: 60_000}
		if _, err := rows.PutTurn(tx, turn, 5); err != nil {
			return err
		}
		return rows.WantTranscripts(tx, m, m.ID, turn, 1)
	})
	return m, turn
}

func wantedTranscripts(t *testing.T, s *store.Store) []rows.WantedTranscript {
	t.Helper()
	all, err := rows.WantedTranscripts(t.Context(), s.Reader, 10)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The first time holds, and so does that of the files if it is later.
func TestTranscripts_HeldOnce_TurnStartsThen(t *testing.T) {
	t.Parallel()
	for until, starts := range map[int64]int64{90_000: 90_000, 30_000: 60_000} {
		s := storetest.Open(t)
		m, turn := voiceTurn(t, s)
		want := []rows.WantedTranscript{{ID: 1, MessageID: m.ID, TurnID: turn.ID, N: 2, Folder: "main", TurnCreated: 1, TurnWaits: true, File: m.Attachments[1]}}
		differ(t, "the audio file that can be read", wantedTranscripts(t, s), want)
		for _, until := range []int64{until, 120_000} {
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.HoldForTranscript(tx, 1, turn.ID, until, 2) })
		}
		if got := wantedTranscripts(t, s)[0].Until; got != until {
			t.Errorf("held until %d, want %d", got, until)
		}
		if got := storetest.Turn(t, s, turn.ID); got.NotBefore != starts {
			t.Errorf("the turn: %+v, want its start at %d", got, starts)
		}
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndWait(tx, turn.ID, msg.WaitsFiles) })
		if got := wantedTranscripts(t, s); len(got) != 1 || got[0].TurnWaits {
			t.Errorf("after the end of the wait: %+v", got)
		}
	}
}

func TestTranscripts_End_IsStoredOnceCleanAndBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, problem string
		want          msg.Transcript
	}{
		"text":    {" a\xffb\x00c\n", "", msg.Transcript{Text: "a\uFFFDbc"}},
		"long":    {strings.Repeat("ä", rows.MaxTranscript), "", msg.Transcript{Text: strings.Repeat("ä", rows.MaxTranscript/2-2) + msg.CutMark}},
		"problem": {"half of it", "it failed", msg.Transcript{Error: "it failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			m, _ := voiceTurn(t, s)
			end := func(text, problem string) (stored bool) {
				storetest.Write(t, s, func(tx *store.Tx) (err error) { stored, err = rows.EndTranscript(tx, 1, text, problem, 5); return err })
				return stored
			}
			if !end(c.text, c.problem) || end("later", "") {
				t.Error("not stored once")
			}
			if err := factrows.FillTranscripts(t.Context(), s.Reader, []*msg.Message{m}); err != nil {
				t.Fatal(err)
			}
			differ(t, "got", m.Attachments[1].Transcript, &c.want)
			if m.Attachments[0].Transcript != nil || len(wantedTranscripts(t, s)) != 0 {
				t.Error("other files have transcripts, or one is still wanted")
			}
		})
	}
}

// A message may be answered by several turns, such as one that another replies to: it is transcribed once.
func TestTranscripts_WantedAgain_StaysAsItIs(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m, turn := voiceTurn(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := rows.EndTranscript(tx, 1, "words", "", 5); return err })
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.WantTranscripts(tx, m, m.ID, turn, 6) })
	if err := factrows.FillTranscripts(t.Context(), s.Reader, []*msg.Message{m}); err != nil || m.Attachments[1].Transcript.Text != "words" {
		t.Errorf("%+v, %v", m.Attachments[1].Transcript, err)
	}
}

func TestTranscripts_MessagePurged_IsDeletedWithIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m, turn := voiceTurn(t, s)
	var deleted int
	storetest.Write(t, s, func(tx *store.Tx) error {
		if _, err := rows.EndTranscript(tx, 1, "words", "", 2); err != nil {
			return err
		}
		if err := tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, 3); err != nil {
			return err
		}
		return tx.Exec(`UPDATE turns SET state = 'cancelled', ended_at = 4`)
	})
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		if _, err := rows.Purge(tx, rows.HistoryTurns, []int64{turn.ID}, 1000); err != nil {
			return err
		}
		deleted, err = rows.Purge(tx, rows.HistoryMessages, []int64{m.ID}, 1000)
		return err
	})
	if deleted != 1 {
		t.Fatalf("%d messages are deleted", deleted)
	}
	if err := factrows.FillTranscripts(t.Context(), s.Reader, []*msg.Message{m}); err != nil || m.Attachments[1].Transcript != nil {
		t.Errorf("%+v, %v", m.Attachments[1].Transcript, err)
	}
}
