package tools

import (
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/timed/reminders"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// ownReminders are the active ones of the fixture's chat.
func (f *fixture) ownReminders() []*msg.Reminder {
	f.t.Helper()
	return storetest.Must(factrows.Reminders(f.t.Context(), f.st.Reader, factrows.ReminderList{ChatJID: chat, State: msg.ReminderActive, Limit: 1000}))(f.t)
}

func TestReminderCreate_Reminder_FiresInItsZoneAndIsActive(t *testing.T) {
	f := parallel(t)
	out := f.works("reminder_create", `{"kind":"text","body":"stand-up","due_at":"2023-11-15T09:00:00","time_zone":"Europe/Berlin"}`)
	if !strings.Contains(out, `"next_at":"2023-11-15T09:00:00+01:00"`) {
		t.Errorf("result %s", out)
	}
	all := f.ownReminders()
	made := all[len(all)-1]
	if made.Folder != folder || made.CreatedBy != "telegram:7" || time.UnixMilli(made.NextSlot).UTC().Hour() != 8 || f.changes != 1 {
		t.Errorf("%+v, %d changes", made, f.changes)
	}
	f.shows("list_active_context_objects", `{"allowed_kinds":["reminder"]}`, "activated_by_reminder_create", "future_reminder")
}

func TestReminderCreate_TooManyForAChat_IsRefused(t *testing.T) {
	f := parallel(t)
	for range reminders.MaxPerChat - len(f.ownReminders()) {
		f.reminder(folder, chat)
	}
	f.refused("reminder_create", `{"kind":"text","body":"one more","cron":"0 9 * * *"}`, "cancel some")
}

func TestReminderUpdateAndCancel_OwnReminder_Change(t *testing.T) {
	f := parallel(t)
	f.works("reminder_update", `{"id":OWN_REMINDER,"cron":"0 7 * * *"}`)
	if r := f.ownReminders()[0]; r.Cron != "0 7 * * *" || r.Body != "stand-up" || time.UnixMilli(r.NextSlot).UTC().Hour() != 7 || f.changes != 1 {
		t.Errorf("%+v, %d changes", r, f.changes)
	}
	f.works("reminder_cancel", `{"id":OWN_REMINDER}`)
	if all := f.ownReminders(); len(all) != 0 {
		t.Errorf("still active: %+v", all)
	}
	f.refused("reminder_update", `{"id":OWN_REMINDER,"body":"x"}`, "is cancelled")
}

func TestReminderList_OtherGroupsOfTheChat_AreLeftOut(t *testing.T) {
	f := parallel(t)
	f.reminder("other", chat)
	f.reminder("acme/eng", chat)
	if list := f.works("reminder_list", `{}`); strings.Count(list, `"body"`) != 2 {
		t.Errorf("listed: %s", list)
	}
	if active := f.works("list_active_context_objects", `{}`); strings.Count(active, "activated_by_reminder_list") != 2 {
		t.Errorf("active: %s", active)
	}
}

func TestBroadcast_AllChats_ReachesThoseOfTheGroupAtTheTopLevel(t *testing.T) {
	f := parallel(t)
	f.write(func(tx *store.Tx) error {
		for _, jid := range []string{chat, foreignChat} {
			if err := tx.PutChat(jid, msg.ChatGroup, "", 1); err != nil {
				return err
			}
		}
		return nil
	})
	before := f.last().ID
	f.works("broadcast", `{"text":"hello <internal>not this</internal>"}`)
	f.refused("broadcast", `{"text":"hi","chats":["OWN_CHAT","OWN_CHAT"]}`, "twice")
	m := f.last()
	if m.ID != before+1 {
		t.Fatalf("%d messages", m.ID-before)
	}
	if m.ChatJID != chat || m.Content != "hello" || m.Source != msg.SourceBroadcast || m.ThreadID != "" || m.OutState != msg.OutQueued {
		t.Errorf("%+v", m)
	}
}

// forum is a Discord forum that the group acme answers, with one post.
func (f *fixture) forum() (jid, post string) {
	f.t.Helper()
	jid, post = "discord:900", "901"
	f.write(func(tx *store.Tx) error {
		for _, jid := range []string{jid, chat} {
			if err := tx.PutChat(jid, msg.ChatGroup, "", 1); err != nil {
				return err
			}
		}
		if err := tx.PutThread(msg.Thread{ChatJID: jid, ID: post, Kind: "forum_post"}); err != nil {
			return err
		}
		return tx.PutRoute(&msg.Route{Match: "chat_jid=" + jid, Target: folder})
	})
	return jid, post
}

// A forum takes messages in its posts alone: a call that would write outside of them is refused.
func TestForum_OutsideOfPosts_IsRefused(t *testing.T) {
	f := parallel(t)
	jid, post := f.forum()
	f.refused("broadcast", `{"text":"hi","chats":["`+jid+`"]}`, "leave it out")
	f.refused("inject_message", `{"chat_jid":"`+jid+`","content":"hi"}`, "give the id of a post")
	f.works("inject_message", `{"chat_jid":"`+jid+`","content":"hi","topic":"`+post+`"}`)
	f.shows("broadcast", `{"text":"hi"}`, `"left_out":["`+jid+`"]`)
	if m := f.last(); m.ChatJID == jid || m.Sender != msg.AgentSender(folder) {
		t.Errorf("the broadcast is %+v", m)
	}
	f.in(jid, "", "")
	for tool, args := range map[string]string{
		"send_message": `{"text":"x"}`, "send_file": `{"path":"out/report.txt"}`, "poll_create": `{"question":"Where?","options":["a","b"]}`,
	} {
		f.refused(tool, args, "give the id of a post")
	}
	f.refused("ask_user", `{"question":"Which?","options":["a","b"]}`, "ask with send_message, and the id of a post as topic")
	f.works("send_message", `{"text":"x","topic":"`+post+`"}`)
	if m := f.last(); m.ThreadID != post {
		t.Errorf("into the post: %+v", m)
	}
	f.refused("reminder_create", `{"kind":"text","body":"the eggs are done","cron":"0 9 * * *"}`, "say it in a post")
}

// A reminder is sent into the thread where it was made, but for channels of Slack.
func TestReminderCreate_InAThread_IsSentThere(t *testing.T) {
	t.Parallel()
	for jid, want := range map[string]string{"telegram:-5": "77", "discord:6": "77", "slack:C7": ""} {
		f := newFixture(t)
		f.write(func(tx *store.Tx) error { return tx.PutRoute(&msg.Route{Match: "chat_jid=" + jid, Target: folder}) })
		f.in(jid, "77", "77")
		f.works("reminder_create", `{"kind":"text","body":"x","cron":"0 9 * * *"}`)
		all, err := factrows.Reminders(t.Context(), f.st.Reader, factrows.ReminderList{ChatJID: jid, State: msg.ReminderActive, Limit: 10})
		if err != nil || len(all) != 1 || all[0].ThreadID != want || all[0].Topic != "77" {
			t.Errorf("%s: %+v, %v", jid, all, err)
		}
	}
}
