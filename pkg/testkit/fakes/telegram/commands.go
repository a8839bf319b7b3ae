package telegram

import (
	"fmt"
	"regexp"
)

var (
	commandForm  = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)
	languageForm = regexp.MustCompile(`^([a-z]{2})?$`)
)

// scope names a list of commands: each kind of chats has one for every language, and one for users of all others.
type scope struct{ kind, language string }

// scopeOf reads the scope of a request; the default one if it names none. This fake has no lists for single chats.
func scopeOf(p params) (of scope, err error) {
	given := struct {
		Type string `json:"type"`
	}{Type: "default"}
	if _, err := p.json("scope", &given); err != nil {
		return of, badRequest("can't parse BotCommandScope JSON object")
	}
	of = scope{kind: given.Type, language: p.str("language_code")}
	switch given.Type {
	case "default", "all_private_chats", "all_group_chats", "all_chat_administrators":
	default:
		return of, badRequest("can't parse BotCommandScope: unsupported type specified")
	}
	if !languageForm.MatchString(of.language) {
		return of, badRequest("invalid language code specified")
	}
	return of, nil
}

func (s *Server) getMyCommands(p params) (any, error) {
	of, err := scopeOf(p)
	if err != nil {
		return nil, err
	}
	return append([]Command{}, s.commands[of]...), nil
}

func (s *Server) setMyCommands(p params) (any, error) {
	of, err := scopeOf(p)
	if err != nil {
		return nil, err
	}
	var commands []Command
	if found, err := p.json("commands", &commands); err != nil || !found {
		return nil, badRequest("can't parse commands JSON object")
	}
	for _, c := range commands {
		switch {
		case !commandForm.MatchString(c.Command):
			return nil, badRequest("BOT_COMMAND_INVALID")
		case c.Description == "" || units(c.Description) > 256:
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	if len(commands) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	s.setCommands(of, commands)
	return true, nil
}

func (s *Server) setCommands(of scope, commands []Command) {
	if s.commands[of] = commands; len(commands) == 0 {
		delete(s.commands, of)
	}
}

// SetCommands sets the bot's commands in a scope, such as "default", as its owner does at
// BotFather or another program with its token.
func (s *Server) SetCommands(in, language string, commands ...Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setCommands(scope{kind: in, language: language}, commands)
}

// Menu are the commands that Telegram shows to a user of a language in a chat: those of the first list, from
// the narrowest scope to the default one, that is not empty.
func (p Place) Menu(to User) (menu []Command) {
	p.act(func(r *room) error {
		if !r.in(to) {
			return fmt.Errorf("%s is not a member", to.FirstName)
		}
		scopes := []scope{{kind: "all_group_chats"}}
		switch {
		case r.chat.Type == Private:
			scopes = []scope{{kind: "all_private_chats"}}
		case r.admin(to):
			scopes = []scope{{kind: "all_chat_administrators"}, {kind: "all_group_chats"}}
		}
		for _, of := range append(scopes, scope{kind: "default"}) {
			for _, language := range []string{to.Language, ""} {
				of.language = language
				if menu = p.s.commands[of]; len(menu) > 0 {
					return nil
				}
			}
		}
		return nil
	})
	return menu
}
