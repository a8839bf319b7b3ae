package slack_test

import (
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/slack"
)

func TestViews_TriggerOpensOneModal(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	r.dial()
	modal, home := `{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[]}`, `{"type":"home","blocks":[]}`
	given := team.Command(alice, "/arizuko", "")
	r.refuse("invalid_arguments", "views.open", "trigger_id", given.TriggerID, "view", home)
	r.must("views.open", "trigger_id", given.TriggerID, "view", modal)
	r.refuse("exchanged_trigger_id", "views.open", "trigger_id", given.TriggerID, "view", modal)
	r.refuse("invalid_trigger_id", "views.open", "trigger_id", "1.2.x", "view", modal)
	r.must("views.publish", "user_id", alice.ID, "view", home)
	r.refuse("invalid_arguments", "views.publish", "user_id", "U404", "view", home)
	if all := r.Views(); len(all) != 2 || all[0].UserID != alice.ID || string(all[1].Content) != home {
		t.Errorf("views: %+v", all)
	}
}

func TestScheduleMessage_IsPostedAtItsTime(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	at := func(in time.Duration) string { return fmt.Sprint(time.Now().Add(in).Unix()) }
	r.refuse("time_in_past", "chat.scheduleMessage", "channel", team.ChannelID, "text", "x", "post_at", at(-time.Minute))
	r.refuse("time_too_far", "chat.scheduleMessage", "channel", team.ChannelID, "text", "x", "post_at", at(121*24*time.Hour))
	r.refuse("invalid_time", "chat.scheduleMessage", "channel", team.ChannelID, "text", "x")
	id := r.must("chat.scheduleMessage", "channel", team.ChannelID, "text", "never", "post_at", at(2*time.Second)).str("scheduled_message_id")
	r.must("chat.deleteScheduledMessage", "channel", team.ChannelID, "scheduled_message_id", id)
	r.refuse("invalid_scheduled_message_id", "chat.deleteScheduledMessage", "channel", team.ChannelID, "scheduled_message_id", id)
	r.must("chat.scheduleMessage", "channel", team.ChannelID, "text", "later", "post_at", at(2*time.Second))
	if len(team.Messages()) != 0 {
		t.Error("posted at once")
	}
	if err := r.Until(r.ctx, func() bool { return len(team.Messages()) > 0 }); err != nil || team.Messages()[0].Text != "later" {
		t.Errorf("%v: %+v", err, team.Messages())
	}
}
