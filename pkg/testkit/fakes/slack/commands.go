package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

const hookPath = "/commands/"

// hook is the target of a response URL.
type hook struct {
	channel string
	pressed string // the timestamp of the message with the pressed button; "" for a command
}

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
		given = p.s.invocation(r, "")
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
		given = p.s.invocation(r, ts)
		container := fields{"type": "message", "message_ts": ts, "channel_id": r.ID, "is_ephemeral": false}
		if m.ThreadTS != "" {
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

func (s *Server) invocation(r *room, pressed string) Invocation {
	path := hookPath + teamID + "/" + s.id("") + "/FAKEfakeFAKEfake"
	s.hooks[path] = hook{channel: r.ID, pressed: pressed}
	s.ids++
	id := fmt.Sprintf("%d.1000000000001.fake%08x", 13_000_000_000+s.ids, s.ids)
	s.triggers[id] = time.Now()
	return Invocation{TriggerID: id, ResponseURL: s.Base() + path}
}

// respond answers a response URL.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, path string) {
	p, err := readParams(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.useHook(s.hooks[path], p)
	}
	s.Add(recorded("response_url", p, nil, err, Fault{}))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write([]byte("ok"))
}

func (s *Server) useHook(h hook, p params) error {
	r, m := s.rooms[h.channel], &Message{Type: "message"}
	if r == nil {
		return errorCode("invalid_url")
	}
	if err := p.content(m, maxText); err != nil {
		return err
	}
	if original := r.find(h.pressed); p.bool("replace_original") && original != nil {
		s.replace(r, original, m)
		return nil
	}
	s.answerIn(r, m, p.str("response_type"), p.str("thread_ts"))
	return nil
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
