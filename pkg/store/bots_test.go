package store_test

import (
	"testing"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestUnreachable_MessagesOfFormerBotsAndChats(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	why := func(jid, platformID string) string {
		t.Helper()
		return storetest.Must(s.Unreachable(t.Context(), &msg.Message{ChatJID: jid, PlatformID: platformID}))(t)
	}
	for _, id := range []string{"", "7"} {
		if text := why("telegram:42", id); text != "" {
			t.Errorf("before any bot is known %q %s", id, text)
		}
	}
	for i, bot := range []string{"1", "2", "3", "1", "3"} {
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutBot("teled", bot, int64(i)) })
		if got, want := storetest.Must(s.Bots(t.Context(), "teled"))(t), (store.Bots{First: "1", Current: bot}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		for _, jid := range []string{"telegram:42", "telegram:-5"} {
			for of, id := range map[string]string{"1": "7", "2": "b2.7", "3": "b3.7:e:1-ab"} {
				if reached := why(jid, id) == ""; reached != (of == bot) {
					t.Errorf("bot %s reaches %s in %s: %t", bot, id, jid, reached)
				}
			}
			if text := why(jid, ""); text != "" {
				t.Errorf("a message that is still to be sent %s", text)
			}
		}
	}
	for jid, id := range map[string]string{"telegram:-1004000000001": "7", "telegram+work:42": "7", "discord:dm-5": "7", "slack:D5": "1764000000.000200"} {
		if text := why(jid, id); text != "" {
			t.Errorf("%s in %s %s", id, jid, text)
		}
	}
	if why("telegram:-1004000000001", "old:7") == "" {
		t.Error("a message of the former group can be changed")
	}
	if changes := storetest.Must(factrows.Audit(t.Context(), s.Reader, factrows.AuditQuery{What: store.AuditBot, Limit: 9}))(t); len(changes) != 4 || changes[3].Detail != "1 to 2" {
		t.Errorf("the audit is %+v", changes)
	}
}
