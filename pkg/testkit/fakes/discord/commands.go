package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The documented limits of commands and interactions.
const (
	maxCommands    = 100
	maxOptions     = 25
	maxDescription = 100
	answerWithin   = 3 * time.Second
	stringOption   = 3
)

// commandForm matches the name of a command.
var commandForm = regexp.MustCompile(`^[-_'\p{L}\p{N}]{1,32}$`)

// Command is a registered application command.
type Command struct {
	ID            string          `json:"id"`
	ApplicationID string          `json:"application_id"`
	Version       string          `json:"version"`
	Type          int             `json:"type"`
	Name          string          `json:"name"`
	Description   string          `json:"description"`
	Options       []CommandOption `json:"options,omitempty"`
}

// CommandOption is an argument of a command; Type 3 is a string.
type CommandOption struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required,omitempty"`
}

// InteractionSummary is the interaction to which a message is the response.
type InteractionSummary struct {
	ID   string `json:"id"`
	Type int    `json:"type"`
	User User   `json:"user"`
}

// Interaction is a use of a command.
type Interaction struct {
	ID    string
	Token string
}

// interaction is a use of a command, and whether it was answered.
type interaction struct {
	id       string
	by       User
	at       time.Time
	ch       *channel
	answered bool
}

// owns validates the application of a request.
func (s *Server) owns(q *request) error {
	id, err := q.id("application")
	switch {
	case err != nil:
		return err
	case id != s.me.ID:
		return refuse(403, 20012, "You are not authorized to perform this action on this application")
	}
	return nil
}

func (s *Server) getCommands(q *request) (any, error) {
	if err := s.owns(q); err != nil {
		return nil, err
	}
	return append([]Command{}, s.commands...), nil
}

// overwriteCommands replaces all commands; those of the same name keep their ids.
func (s *Server) overwriteCommands(q *request) (any, error) {
	if err := s.owns(q); err != nil {
		return nil, err
	}
	var commands []Command
	var loose []map[string]json.RawMessage
	if q.decode(&loose) != nil || loose == nil {
		return nil, invalid("_", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
	}
	if err := q.decode(&commands); err != nil {
		return nil, err
	}
	if len(commands) > maxCommands {
		return nil, refuse(400, 30032, fmt.Sprintf("Maximum number of application commands reached (%d)", maxCommands))
	}
	for i, c := range commands {
		if bytes.Equal(loose[i]["options"], []byte("null")) {
			return nil, required(fmt.Sprintf("%d.options", i))
		}
		if err := checkCommand(fmt.Sprint(i), c, commands[:i]); err != nil {
			return nil, err
		}
		commands[i].ID, commands[i].ApplicationID, commands[i].Version = s.commandID(c.Name), s.me.ID, s.newID()
		commands[i].Type = max(c.Type, 1)
	}
	s.commands = commands
	return append([]Command{}, commands...), nil
}

func (s *Server) commandID(name string) string {
	for _, c := range s.commands {
		if c.Name == name {
			return c.ID
		}
	}
	return s.newID()
}

func checkCommand(field string, c Command, before []Command) error {
	named := func(field, name, description string) error {
		switch {
		case !commandForm.MatchString(name) || strings.ToLower(name) != name:
			return invalid(field+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		case description == "" || utf8.RuneCountInString(description) > maxDescription:
			return invalid(field+".description", "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be between 1 and %d in length.", maxDescription))
		}
		return nil
	}
	if err := named(field, c.Name, c.Description); err != nil {
		return err
	}
	if slices.ContainsFunc(before, func(other Command) bool { return other.Name == c.Name }) {
		return invalid(field, "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
	}
	if len(c.Options) > maxOptions {
		return tooLong(field+".options", maxOptions)
	}
	for i, o := range c.Options {
		at := fmt.Sprintf("%s.options.%d", field, i)
		if o.Type < 1 || o.Type > 11 {
			return invalid(at+".type", "BASE_TYPE_CHOICES", "Value must be one of (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11).")
		}
		if err := named(at, o.Name, o.Description); err != nil {
			return err
		}
	}
	return nil
}

// Commands are the bot's registered commands.
func (s *Server) Commands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Command uses one of the bot's commands. The text is its first option.
func (p Place) Command(by User, name, text string) Interaction {
	var given Interaction
	p.act(func(ch *channel) error {
		s := p.s
		i := slices.IndexFunc(s.commands, func(c Command) bool { return c.Name == name })
		if i < 0 || text != "" && len(s.commands[i].Options) == 0 {
			return fmt.Errorf("no command %s with these options", name)
		}
		c := s.commands[i]
		data := map[string]any{"id": c.ID, "name": c.Name, "type": c.Type}
		if text != "" {
			data["options"] = []any{map[string]any{"name": c.Options[0].Name, "type": stringOption, "value": text}}
		}
		given.ID = s.newID()
		given.Token = fmt.Sprintf("aW50ZXJhY3Rpb246%sFAKE", given.ID)
		s.interactions[given.Token] = &interaction{id: given.ID, by: by, at: s.clock(), ch: ch}
		event := map[string]any{
			"id": given.ID, "application_id": s.me.ID, "type": 2, "token": given.Token, "version": 1, "data": data,
			"channel_id": ch.info.ID, "channel": ch.snapshot(s), "locale": "en-US", "entitlements": []any{},
			"app_permissions": everyonePermissions.String(), "attachment_size_limit": maxUpload,
		}
		if ch.guild == nil {
			event["user"], event["context"] = by, 1
		} else {
			event["member"], event["guild_id"], event["guild_locale"], event["context"] = ch.guild.member(by.ID), ch.guild.id, "en-US", 0
		}
		s.emit(0, "INTERACTION_CREATE", event)
		return nil
	})
	return given
}

// answerInteraction is the response to a command, once and in time.
func (s *Server) answerInteraction(q *request) (any, error) {
	const pong, say, deferred = 1, 4, 5
	var body struct {
		Type int       `json:"type"`
		Data *outgoing `json:"data"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	to := s.interactions[q.path("token")]
	switch {
	case to == nil || to.id != q.path("interaction") || s.clock().Sub(to.at) > answerWithin:
		return nil, unknown(10062, "interaction")
	case to.answered:
		return nil, refuse(400, 40060, "Interaction has already been acknowledged.")
	case body.Type != pong && body.Type != say && body.Type != deferred:
		return nil, invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {1, 4, 5, 6, 7, 8, 9, 10, 12}.")
	}
	if body.Type == say {
		if err := s.say(q, to, body.Data); err != nil {
			return nil, err
		}
	}
	to.answered = true
	q.call.ChannelID = to.ch.info.ID
	return nil, nil
}

// say posts the response to a command, unless it is ephemeral.
func (s *Server) say(q *request, to *interaction, o *outgoing) error {
	if o == nil {
		return required("data")
	}
	if err := o.check(nil); err != nil {
		return err
	}
	if o.Content != nil {
		q.call.Text = *o.Content
	}
	m, err := s.compose(q, to.ch, o, nil)
	if err != nil {
		return err
	}
	m.Type, m.Interaction = ChatInputCommand, &InteractionSummary{ID: to.id, Type: 2, User: to.by}
	if q.call.Ephemeral = m.Flags&Ephemeral != 0; q.call.Ephemeral {
		return nil
	}
	s.add(to.ch, m)
	q.call.MessageID = m.ID
	s.emitMessage("MESSAGE_CREATE", to.ch, m)
	return nil
}

// Answered reports whether the bot has answered a command.
func (s *Server) Answered(i Interaction) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.interactions[i.Token]
	return asked != nil && asked.answered
}
