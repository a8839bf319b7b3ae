package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Invocation is a slash command, or a press of a button.
type Invocation struct {
	TriggerID   string
	ResponseURL string
}

// TryCommand sends a slash command. It fails if the app does not register it, and in a thread, where Slack has none.
func (p Place) TryCommand(by User, command, text string) (Invocation, error) {
	var given Invocation
	err := p.try(func(r *room) error {
		switch {
		case !slices.Contains(p.s.o.Commands, command):
			return fmt.Errorf("%s is not a valid command", command)
		case p.ThreadTS != "":
			return fmt.Errorf("%s is not supported in threads", command)
		case !r.in(by):
			return fmt.Errorf("%s is not a member", by.RealName)
		}
		given = p.s.invocation()
		name := map[string]string{DM: "directmessage", Private: "privategroup"}[r.Kind]
		p.s.Emit(&delivery{kind: "slash_commands", eventID: given.TriggerID, payload: encoded(map[string]string{
			"token": "FAKEverificationTokenXXXX", "team_id": teamID, "team_domain": DefaultTeam, "channel_id": r.ID,
			"channel_name": cmp.Or(name, r.Name), "user_id": by.ID, "user_name": by.Name, "command": command,
			"text":       text,
			"api_app_id": p.s.me.AppID, "is_enterprise_install": "false", "response_url": given.ResponseURL,
			"trigger_id": given.TriggerID,
		})})
		return nil
	})
	return given, err
}

// Command is TryCommand for a command that must succeed.
func (p Place) Command(by User, command, text string) Invocation {
	given, err := p.TryCommand(by, command, text)
	must(err)
	return given
}

// PressButton is TryPressButton for a button that must be there.
func (p Place) PressButton(by User, ts, actionID, value string) Invocation {
	given, err := p.TryPressButton(by, ts, actionID, value)
	must(err)
	return given
}

// TryPressButton presses a button under a message.
func (p Place) TryPressButton(by User, ts, actionID, value string) (given Invocation, err error) {
	err = p.try(func(r *room) error {
		m := r.find(ts)
		if err := p.s.pressable(m, actionID, value); err != nil {
			return err
		}
		if !r.in(by) {
			return fmt.Errorf("%s is not a member", by.RealName)
		}
		given = p.s.invocation()
		container := fields{"type": "message", "message_ts": ts, "channel_id": r.ID, "is_ephemeral": false}
		switch {
		case len(m.attachedBlocks()) > 0: // no message has buttons in both
			container["type"], container["attachment_id"], container["is_app_unfurl"] = "message_attachment", 1, false
		case m.ThreadTS != "":
			container["thread_ts"] = m.ThreadTS
		}
		p.s.Emit(&delivery{kind: "interactive", eventID: given.TriggerID, payload: encoded(fields{
			"type": "block_actions", "team": map[string]string{"id": teamID, "domain": DefaultTeam},
			"api_app_id": p.s.me.AppID,
			"user":       map[string]string{"id": by.ID, "username": by.Name, "name": by.Name, "team_id": teamID},
			"channel":    map[string]string{"id": r.ID, "name": r.Name}, "message": m.snapshot(),
			"container":  container,
			"trigger_id": given.TriggerID, "response_url": given.ResponseURL,
			"actions": []map[string]string{{"type": "button", "action_id": actionID, "block_id": "b1", "value": value,
				"action_ts": p.s.nextTS()}},
		})})
		return nil
	})
	return given, err
}

func (s *Server) invocation() Invocation {
	s.ids++
	return Invocation{
		TriggerID:   fmt.Sprintf("%d.1000000000001.fake%08x", 13_000_000_000+s.ids, s.ids),
		ResponseURL: s.Base() + "/commands/" + teamID + "/" + s.id("") + "/FAKEfakeFAKEfake", // the fake takes no responses there
	}
}

// answerIn posts the app's response to a command, for all or for its user only.
func (s *Server) answerIn(r *room, m *Message, responseType, threadTS string) {
	s.bot(m)
	if responseType == "in_channel" {
		s.say(r, m, threadTS)
		return
	}
	m.TS, m.IsEphemeral = s.nextTS(), true
	r.ephemeral = append(r.ephemeral, *m)
}

// showAnswer posts the response that the ack of a slash command contains.
func (s *Server) showAnswer(d *delivery, payload json.RawMessage) {
	var command struct {
		Channel string `json:"channel_id"`
	}
	if d.kind != "slash_commands" || len(payload) == 0 || json.Unmarshal(d.payload, &command) != nil {
		return
	}
	p := params{Params: fakeserver.Params{}}
	if p.readJSON(payload) != nil {
		p.Params["text"] = string(payload) // the response may be plain text
	}
	r, m := s.rooms[command.Channel], &Message{Type: "message"}
	if r != nil && p.content(m, maxText) == nil {
		s.answerIn(r, m, p.str("response_type"), "")
	}
}

// Ephemeral are the bot's messages that only one user sees.
func (p Place) Ephemeral() []Message {
	var all []Message
	p.act(func(r *room) error {
		all = append(all, r.ephemeral...)
		return nil
	})
	return all
}
