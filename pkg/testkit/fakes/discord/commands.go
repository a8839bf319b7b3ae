package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The documented limits of commands and interactions.
const (
	maxCommands    = 100
	maxOptions     = 25
	maxDescription = 100
	stringOption   = 3
	slashCommand   = 1
	entryPoint     = 4 // opens an Activity
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

// registered is the commands of the application of a request.
func (s *Server) registered(q *request) (*[]Command, error) {
	if q.path("application") != s.me.ID {
		return nil, refuse(403, 20012, "You are not authorized to perform this action on this application")
	}
	return &s.commands, nil
}

func (s *Server) getCommands(q *request) (any, error) {
	all, err := s.registered(q)
	if err != nil {
		return nil, err
	}
	return append([]Command{}, *all...), nil
}

// completed is a command of a request, with the fields that Discord adds to it.
func (s *Server) completed(c Command, id string) Command {
	c.ID, c.ApplicationID, c.Version, c.Type = id, s.me.ID, s.newID(), max(c.Type, slashCommand)
	return c
}

// EntryPoint registers the command that opens the application's Activity, as the developer portal does.
func (s *Server) EntryPoint(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, Command{ID: s.newID(), ApplicationID: s.me.ID, Version: s.newID(), Type: entryPoint,
		Name: name})
}

// AddCommand registers a slash command, as another program of the application's owner does.
func (s *Server) AddCommand(name, description string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, Command{
		ID: s.newID(), ApplicationID: s.me.ID, Version: s.newID(), Type: slashCommand, Name: name,
		Description: description,
	})
}

// EditCommand changes the description of the slash command of a name.
func (s *Server) EditCommand(name, description string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		must(fmt.Errorf("no command %s", name))
	}
	s.commands[i].Description = description
}

// readCommand reads and validates the body of a call about one command. Fields that it does not name stay as they are.
func (s *Server) readCommand(q *request, c Command) (Command, error) {
	var loose map[string]json.RawMessage
	if q.decode(&loose) != nil || loose == nil {
		return c, invalid("_", "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType")
	}
	if bytes.Equal(loose["options"], []byte("null")) {
		return c, required("options")
	}
	id := c.ID
	if err := q.decode(&c); err != nil {
		return c, err
	}
	return s.completed(c, id), checkCommand("_", c)
}

// createCommand registers a command, in place of the one of its name and type.
func (s *Server) createCommand(q *request) (any, error) {
	all, err := s.registered(q)
	if err != nil {
		return nil, err
	}
	c, err := s.readCommand(q, Command{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(*all, func(other Command) bool { return other.Name == c.Name && other.Type == c.Type })
	switch {
	case i >= 0:
		c.ID = (*all)[i].ID
		(*all)[i] = c
	case len(*all) >= maxCommands:
		return nil, refuse(400, 30032, fmt.Sprintf("Maximum number of application commands reached (%d)", maxCommands))
	default:
		c.ID = s.newID()
		*all = append(*all, c)
	}
	return c, nil
}

func (s *Server) editCommand(q *request) (any, error) {
	all, err := s.registered(q)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(*all, func(c Command) bool { return c.ID == q.path("command") })
	if i < 0 {
		return nil, unknown(10063, "application command")
	}
	c, err := s.readCommand(q, (*all)[i])
	if err != nil {
		return nil, err
	}
	(*all)[i] = c
	return c, nil
}

func checkCommand(field string, c Command) error {
	named := func(field, name, description string) error {
		switch {
		case !commandForm.MatchString(name) || strings.ToLower(name) != name:
			return invalid(field+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		case description == "" || utf8.RuneCountInString(description) > maxDescription:
			return invalid(field+".description", "BASE_TYPE_BAD_LENGTH",
				fmt.Sprintf("Must be between 1 and %d in length.", maxDescription))
		}
		return nil
	}
	if err := named(field, c.Name, c.Description); err != nil {
		return err
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
	ch := p.lock()
	defer p.unlock()
	all := p.s.commands
	i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name })
	require(i >= 0 && (text == "" || len(all[i].Options) > 0), "no command %s with these options", name)
	c := all[i]
	data := map[string]any{"id": c.ID, "name": c.Name, "type": c.Type}
	if text != "" {
		data["options"] = []any{map[string]any{"name": c.Options[0].Name, "type": stringOption, "value": text}}
	}
	return p.s.interact(ch, by, nil, data)
}
