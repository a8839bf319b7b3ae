package discord

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// answerWithin is how long the bot has for its response to an interaction.
const answerWithin = 3 * time.Second

// InteractionSummary is the interaction to which a message is the response.
type InteractionSummary struct {
	ID   string `json:"id"`
	Type int    `json:"type"`
	User User   `json:"user"`
	// Owners are how the application was installed where the interaction was.
	Owners map[string]string `json:"authorizing_integration_owners"`
	// Pressed is the message of a pressed button.
	Pressed string `json:"interacted_message_id,omitempty"`
}

// owners are the installations of the application that an interaction in a channel is by: that of the guild.
func (ch *channel) owners() map[string]string {
	const guildInstall = "0"
	if ch.guild == nil {
		return map[string]string{guildInstall: "0"}
	}
	return map[string]string{guildInstall: ch.guild.id}
}

// Interaction is a use of a command, or a press of a button.
type Interaction struct {
	ID    string
	Token string
}

// interaction is a use of a command or a press of a button, and whether it was answered.
type interaction struct {
	id       string
	by       User
	at       time.Time
	ch       *channel
	message  *Message // with the button; nil for a command
	answered bool
	response *Message // nil for none
}

// The types of interactions.
const (
	usedCommand   = 2
	pressedButton = 3
)

// interact emits an interaction: with a message the press of a button under it, else the use of a command.
func (s *Server) interact(ch *channel, by User, m *Message, data map[string]any) (given Interaction) {
	given.ID = s.newID()
	given.Token = fmt.Sprintf("aW50ZXJhY3Rpb246%sFAKE", given.ID)
	s.interactions[given.Token] = &interaction{id: given.ID, by: by, at: s.clock(), ch: ch, message: m}
	event := map[string]any{
		"id": given.ID, "application_id": s.me.ID, "type": usedCommand, "token": given.Token, "version": 1,
		"data":       data,
		"channel_id": ch.info.ID, "channel": ch.snapshot(s), "locale": "en-US", "entitlements": []any{},
		"app_permissions": everyonePermissions.String(), "attachment_size_limit": maxUpload,
		"authorizing_integration_owners": ch.owners(),
	}
	if m != nil {
		event["type"], event["message"] = pressedButton, s.inAnswer(ch, m)
	}
	if ch.guild == nil {
		event["user"], event["context"] = by, 1
	} else {
		event["member"], event["guild_id"], event["guild_locale"], event["context"] = ch.guild.member(by.ID),
			ch.guild.id, "en-US", 0
	}
	s.emit(0, "INTERACTION_CREATE", event)
	return given
}

// The types of responses to interactions that the fake knows.
const (
	say            = 4
	deferredUpdate = 6
)

// answerInteraction is the response to an interaction, once and in time.
func (s *Server) answerInteraction(q *request) (any, error) {
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
	}
	if err := s.respond(q, to, body.Type, body.Data); err != nil {
		return nil, err
	}
	to.answered = true
	q.call.ChannelID = to.ch.info.ID
	return nil, nil
}

// respond carries a response out.
func (s *Server) respond(q *request, to *interaction, kind int, o *outgoing) error {
	switch {
	case kind == say && o == nil:
		return required("data")
	case kind == say:
		return s.say(q, to, o)
	case kind == deferredUpdate && to.message != nil:
		return nil
	}
	return invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 6}.") // those that the fake knows
}

// kind is the type of an interaction.
func (to *interaction) kind() int {
	if to.message != nil {
		return pressedButton
	}
	return usedCommand
}

// say posts the response. Only its user sees an ephemeral one. It is no reply, and the bot's permissions do not limit
// it.
func (s *Server) say(q *request, to *interaction, o *outgoing) error {
	files, err := o.check(q)
	if err != nil {
		return err
	}
	o.Reference, o.Nonce = nil, nil
	m, err := s.compose(q, to.ch, o, files)
	if err != nil {
		return err
	}
	m.WebhookID, m.ApplicationID = s.me.ID, s.me.ID
	m.Interaction = &InteractionSummary{ID: to.id, Type: to.kind(), User: to.by, Owners: to.ch.owners()}
	if to.message != nil {
		m.Interaction.Pressed = to.message.ID
		m.answer(to.ch, to.message)
	} else {
		m.Type = ChatInputCommand
	}
	q.call.Ephemeral = m.Flags&Ephemeral != 0
	if q.call.Ephemeral {
		s.complete(to.ch, m)
	} else {
		s.add(to.ch, m)
		s.emitMessage("MESSAGE_CREATE", to.ch, m)
	}
	to.response = m
	q.call.MessageID = m.ID
	return nil
}

// Ephemeral are the answers to interactions in a channel that only one user sees, oldest first.
func (p Place) Ephemeral() (all []Message) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, to := range p.s.interactions {
		if m := to.response; m != nil && to.ch.info.ID == p.ChannelID && m.Flags&Ephemeral != 0 {
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b Message) int { return a.Timestamp.Compare(b.Timestamp) })
	return all
}

// PressAnswer returns the answer that only the user who pressed can read, "" for none. ok is false until the bot has
// answered.
func (s *Server) PressAnswer(i Interaction) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pressed := s.interactions[i.Token]
	if pressed == nil || !pressed.answered {
		return "", false
	}
	if m := pressed.response; m != nil && m.Flags&Ephemeral != 0 {
		text = m.Content
	}
	return text, true
}

// Interactions lists the commands and presses of users, oldest first.
func (s *Server) Interactions() (all []Interaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, given := range s.interactions {
		all = append(all, Interaction{ID: given.id, Token: token})
	}
	slices.SortFunc(all, func(a, b Interaction) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Answered reports whether the bot has answered a command.
func (s *Server) Answered(i Interaction) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.interactions[i.Token]
	return asked != nil && asked.answered
}

// The documented limits of components.
const (
	maxRows     = 5
	maxInRow    = 5
	maxCustomID = 100
	maxLabel    = 80
	actionRow   = 1
	buttonType  = 2
	linkButton  = 5 // the highest style
)

// component is a button under a message. The fake has no other components.
type component struct {
	Type     int             `json:"type"`
	CustomID string          `json:"custom_id"`
	Style    int             `json:"style"`
	Label    string          `json:"label"`
	Emoji    json.RawMessage `json:"emoji"`
	URL      string          `json:"url"`
	Disabled bool            `json:"disabled"`
}

// componentRow is a row of components.
type componentRow struct {
	Type       int         `json:"type"`
	Components []component `json:"components"`
}

// checkComponents validates the rows of buttons under a message.
func checkComponents(raw []json.RawMessage) error {
	if len(raw) > maxRows {
		return invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	var known []string
	for i, one := range raw {
		at := fmt.Sprintf("components.%d", i)
		var row componentRow
		switch {
		case json.Unmarshal(one, &row) != nil:
			return invalid(at, "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType")
		case row.Type != actionRow:
			return invalid(at+".type", "BASE_TYPE_CHOICES", "Value must be one of (1,).")
		case len(row.Components) == 0 || len(row.Components) > maxInRow:
			return invalid(at+".components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
		}
		for j, c := range row.Components {
			if err := c.check(fmt.Sprintf("%s.components.%d", at, j)); err != nil {
				return err
			}
			if c.CustomID != "" && slices.Contains(known, c.CustomID) {
				return invalid(fmt.Sprintf("%s.components.%d.custom_id", at, j), "COMPONENT_CUSTOM_ID_DUPLICATED",
					"Component custom id cannot be duplicated")
			}
			known = append(known, c.CustomID)
		}
	}
	return nil
}

// check validates one button.
func (c component) check(at string) error {
	isLink := c.Style == linkButton
	switch {
	case c.Type != buttonType:
		return invalid(at+".type", "BASE_TYPE_CHOICES", "Value must be one of (2,).")
	case c.Style < 1 || c.Style > linkButton:
		return invalid(at+".style", "BASE_TYPE_CHOICES", "Value must be one of (1, 2, 3, 4, 5).")
	case isLink && c.URL == "":
		return invalid(at+".url", "BASE_TYPE_REQUIRED", "A url is required")
	case isLink && c.CustomID != "":
		return invalid(at, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
			"A custom id and url cannot both be specified")
	case !isLink && c.CustomID == "":
		return invalid(at+".custom_id", "BASE_TYPE_REQUIRED", "A custom id is required")
	case utf8.RuneCountInString(c.CustomID) > maxCustomID:
		return tooLong(at+".custom_id", maxCustomID)
	case utf8.RuneCountInString(c.Label) > maxLabel:
		return tooLong(at+".label", maxLabel)
	case c.Label == "" && len(c.Emoji) == 0:
		return invalid(at, "BUTTON_COMPONENT_INVALID_LABEL_AND_EMOJI", "A label or an emoji is required")
	}
	return nil
}

// Buttons are the ids of a message's buttons by their labels.
func (m *Message) Buttons() map[string]string {
	all := map[string]string{}
	for _, raw := range m.Components {
		var row componentRow
		_ = json.Unmarshal(raw, &row) // it was validated
		for _, c := range row.Components {
			all[c.Label] = c.CustomID
		}
	}
	return all
}

// Press is TryPress for a button that must be there.
func (p Place) Press(by User, id, customID string) Interaction {
	given, err := p.TryPress(by, id, customID)
	must(err)
	return given
}

// TryPress presses a button of the bot under a message.
func (p Place) TryPress(by User, id, customID string) (given Interaction, err error) {
	err = p.withMessage(id, func(ch *channel, m *Message) error {
		if !ch.in(by) {
			return fmt.Errorf("%s is not a member", by.Name())
		}
		for _, raw := range m.Components {
			var row componentRow
			_ = json.Unmarshal(raw, &row) // it was validated
			for _, c := range row.Components {
				if c.CustomID == customID && !c.Disabled {
					given = p.s.interact(ch, by, m, map[string]any{"component_type": buttonType, "custom_id": customID,
						"id": 1})
					return nil
				}
			}
		}
		return fmt.Errorf("message %s has no button %s", id, customID)
	})
	return given, err
}
