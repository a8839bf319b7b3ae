package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/need"
)

// configure writes a group as a shell would, unchecked.
func (r *harness) configure(folder, config string) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		fresh, err := tx.PutGroup(&msg.Group{Folder: folder, Config: []byte(config)})
		if err != nil || fresh {
			return err
		}
		return storetest.SetConfig(tx, folder, []byte(config))
	})
}

// tell is a shell command that answers a turn with words, which the shell expands.
func tell(words string) string {
	return fmt.Sprintf(`read -r start; printf '%%s\n' '%s' '{"status":"ok","result":"'"%s"'"}' '%s'`,
		agentproto.FrameStart, words, agentproto.FrameEnd)
}

func TestSetup_GroupsOwnAgent(t *testing.T) {
	t.Setenv("GROUP_KEY", "s3cr3t-of-the-group")
	t.Setenv("OTHER_KEY", "other")
	r := newHarness(t)
	command := tell("$AGENT_MODEL, $GREETING, ${OTHER_KEY:-no other}, ${GROUP_KEY}")
	r.configure("own", fmt.Sprintf(`{"assistant_name":"Eng","agent":{"command":%q,"model":"m1","env":["GROUP_KEY"],"settings":{"GREETING":"hi"}}}`, command))
	asked := r.ask("hello", group("own"), chat("telegram:2"))
	diff(t, "answer", r.answered(asked), []string{"m1, hi, no other, [redacted]"})
	diff(t, "another group", r.answered(r.ask("hello")), []string{"re: hello"})
	if rows := must[[]*msg.Message](r)(factrows.TurnReplies(t.Context(), r.st.Reader, asked.ID)); rows[0].SenderName != "Eng" {
		t.Errorf("answered as %q", rows[0].SenderName)
	}
}

func TestSetup_PlainSettings_AreNotRedacted(t *testing.T) {
	t.Setenv("API_KEY", "s3cr3t-of-all")
	t.Setenv("CLAUDE_MODEL", "claude-sonnet")
	t.Setenv("HTTPS_PROXY", "http://user:s3cr3t-of-proxy@proxy:1")
	r := newHarness(t)
	r.configure("own", fmt.Sprintf(`{"agent":{"command":%q,"env":["API_KEY","CLAUDE_MODEL","HTTPS_PROXY"],"settings":{"CLAUDE_PERMISSION_MODE":"acceptEdits","MY_TOKEN":"s3cr3t-setting"}}}`,
		tell("$CLAUDE_MODEL, $CLAUDE_PERMISSION_MODE, $HTTPS_PROXY, $API_KEY, $MY_TOKEN")))
	diff(t, "answer", r.answered(r.ask("hello", group("own"))),
		[]string{"claude-sonnet, acceptEdits, http://user:[redacted]@proxy:1, [redacted], [redacted]"})
}

func TestSetup_GroupsOwnTimeouts(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(1))
	r.configure("quick", `{"timeouts":{"timeout":"1s"}}`)
	r.configure("brief", `{"timeouts":{"idle":"0s"}}`)
	r.gate("quick", "never")
	failed := r.await(r.ask("!hold never", group("quick")), msg.TurnFailed)
	if !strings.Contains(failed.Error, "wrote no frame for 1s") {
		t.Errorf("failed with %q", failed.Error)
	}
	r.answered(r.ask("hi", group("brief")), r.ask("hi", chat("telegram:2")))
	r.until("only the patient group's agent is warm", func() bool {
		runs := r.runs()
		return len(runs) == 1 && runs[0].Folder == "main"
	})
}

// A run that began under another configuration takes no further turn. Settings about members concern no agent.
func TestSetup_ConfigurationChanges_NewRunIfItConcernsTheAgent(t *testing.T) {
	t.Parallel()
	for config, fresh := range map[string]bool{
		`{"agent":{"model":"m2"}}`: true,
		`{"access":["telegram:1"],"rate":9,"reach":"none","pin":"operators"}`: false,
	} {
		r := newHarness(t)
		r.answered(r.ask("one"), r.ask("two"))
		r.configure("main", config)
		r.answered(r.ask("three"))
		r.answered(r.ask("four"))
		pids := r.processes("main")
		if len(pids) != 4 || pids[1] != pids[0] || (pids[2] != pids[0]) != fresh || pids[3] != pids[2] {
			t.Errorf("%s: the turns went to %v", config, pids)
		}
	}
}

func TestSetup_Invalid_TurnFailsOnce(t *testing.T) {
	tests := []struct{ name, config, problem string }{
		{"no object", `[]`, "the configuration of group bad: must be a JSON object"},
		{"two mistakes", `{"observe":7,"modle":"m"}`, `observe: must be a text; unknown setting "modle"; did you mean agent.model?`},
		{"limits of a process", `{"limits":{"pids":9}}`, "limits need the runtime bwrap or docker, not process"},
		{"runtime that is not there", `{"agent":{"runtime":"bwrap"}}`, `unknown runtime "bwrap"`},
		{"docker that is not there", `{"agent":{"image":"i"}}`, "docker's client is not installed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newHarness(t, attempts(3), func(cfg *Config) {
				cfg.Runtimes[groupconfig.Docker] = runtime.Docker{Client: "no-such-docker", Network: "none"}
			})
			r.configure("bad", tt.config)
			failed := r.await(r.ask("hi", group("bad")), msg.TurnFailed)
			r.onlyNotice(failed)
			if answers := r.replies(failed)[0]; !strings.Contains(answers, "not set up") {
				t.Errorf("the chat reads %q", answers)
			}
			if failed.Attempts != 1 || !strings.Contains(failed.Error, tt.problem) {
				t.Errorf("after %d attempts: %q", failed.Attempts, failed.Error)
			}
			if log := r.log.String(); strings.Count(log, "run failed") != 1 {
				t.Errorf("log:\n%s", log)
			}
			diff(t, "another group", r.answered(r.ask("hi", chat("telegram:2"))), []string{"re: hi"})
			r.configure("bad", `{}`)
			r.write(func(tx *store.Tx) error { return rows.ReviveTurn(tx, failed.ID) })
			r.m.Retry(r.turn(failed.ID))
			r.await(failed, msg.TurnDone)
		})
	}
}

// A live run keeps its configuration when the group's becomes invalid.
func TestSetup_ConfigurationBecomesInvalid_LiveRunGoesOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.configure("main", `{"observe":"none"}`)
	r.observe("telegram:-3", "elsewhere")
	r.answered(r.ask("one"))
	r.configure("main", `{"observe":7}`)
	r.observe("telegram:-3", "elsewhere again")
	r.answered(r.ask("two"))
	diff(t, "observed", texts(r.last().prompt.Observed.Rows), []string(nil))
}

func TestSetup_GroupFolderIsALink_IsRefused(t *testing.T) {
	r := newHarness(t, attempts(1))
	victim := filepath.Join(r.cfg.Groups, "victim")
	if err := os.MkdirAll(victim, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(r.cfg.Groups, "acme+eng")); err != nil {
		t.Fatal(err)
	}
	failed := r.await(r.ask("hi", group("acme/eng")), msg.TurnFailed)
	if !strings.Contains(failed.Error, "acme+eng, is not a directory") {
		t.Errorf("failed with %q", failed.Error)
	}
	if left, err := os.ReadDir(victim); err != nil || len(left) > 0 {
		t.Errorf("something was written there: %v, %v", left, err)
	}
}

// The owner of the data folder may put links in place of folders that gated, which is root, gives away, reads or
// writes.
func TestSetup_AsRoot_LinksOfTheDataFoldersOwner_NotFollowed(t *testing.T) {
	need.Root(t)
	for _, name := range []string{"groups", "logs", "run", "media"} {
		r := newHarness(t, attempts(1), func(cfg *Config) {
			if err := errors.Join(os.Chmod(filepath.Dir(cfg.Data), 0o755), os.Chown(cfg.Data, 4242, 4243)); err != nil {
				t.Fatal(err)
			}
		})
		victim, link := t.TempDir(), filepath.Join(r.cfg.Data, name)
		for _, folder := range []string{"main", "tmp", "202601"} {
			if err := errors.Join(os.Mkdir(filepath.Join(victim, folder), 0o700), os.WriteFile(filepath.Join(victim, folder, "cat.txt"), []byte("of root"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.RemoveAll(link), os.Symlink(victim, link), os.Lchown(link, 4242, 4243)); err != nil {
			t.Fatal(err)
		}
		row := &msg.Message{Content: "look", Attachments: []msg.Attachment{{Path: "media/202601/cat.txt", Name: "cat.txt"}}}
		asked := r.askRows([]*msg.Message{row})
		if name == "media" { // the turn goes on without the file
			r.answered(asked)
		} else if failed := r.await(asked, msg.TurnFailed); !strings.Contains(failed.Error, filepath.Join(filepath.Base(r.cfg.Data), name)) {
			t.Errorf("%s: failed with %q", name, failed.Error)
		}
		if files, err := filepath.Glob(filepath.Join(r.cfg.Groups, "main", "inbox", "*")); err != nil || len(files) > 0 {
			t.Errorf("%s: the agent got %v, %v", name, files, err)
		}
		err := filepath.WalkDir(victim, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Sys().(*syscall.Stat_t).Uid != 0 || strings.Contains(d.Name(), "run-") {
				t.Errorf("%s: %s was given away or made", name, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// An agent that bubblewrap confines sees its group's files, those that messages
// brought among them, at the path of the group's name, and no other group's.
func TestSetup_Sandbox(t *testing.T) {
	need.Program(t, "bwrap", "bubblewrap")
	r := newHarness(t, func(cfg *Config) {
		cfg.Defaults.Agent.Runtime = groupconfig.Bwrap
		cfg.Runtimes[groupconfig.Bwrap] = runtime.Sandbox{Temp: filepath.Join(cfg.Data, "run", "tmp"), Data: cfg.Data, Network: runtime.NetworkNone}
		cfg.Defaults.Agent.Command = tell(`$(cat inbox/* 2>&1), $(echo *), ${PWD#` + cfg.Data + `}, ${HOME#` + cfg.Data + `}, $(cd ` + cfg.Data + `; echo * */* */*/*)`)
	})
	for _, folder := range []string{"acme", "acme/eng/below", "acme/eng/below/deeper", "acme/beside", "other"} {
		r.configure(folder, `{}`)
		dir := filepath.Join(r.cfg.Groups, msg.DirName(folder))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "private"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	media := filepath.Join(r.cfg.Data, "media", "202601")
	if err := os.MkdirAll(media, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(media, "cat.txt"), []byte("meow"), 0o600); err != nil {
		t.Fatal(err)
	}
	row := &msg.Message{Content: "look", Attachments: []msg.Attachment{{Path: "media/202601/cat.txt", Name: "cat.txt"}}}
	asked := r.askRows([]*msg.Message{row}, group("acme/eng"))
	diff(t, "what it saw", r.answered(asked), []string{"meow, inbox, /groups/acme/eng, /groups/acme/eng, groups groups/acme groups/acme/eng"})
	run := must[*msg.Turn](r)(r.st.Turn(t.Context(), asked.ID)).RunID
	r.noRun()
	if left, err := os.ReadDir(filepath.Join(r.cfg.Data, "run", "tmp")); err != nil || len(left) > 0 {
		t.Errorf("run %d left temporary files: %v, %v", run, left, err)
	}
}

// The folder of a group below, even if none is registered between, neither moves
// with a folder that the agent above renames, nor is replaced by one that it makes.
func TestSetup_GroupAboveRenamesAndPlants_FolderBelowUntouched(t *testing.T) {
	need.Program(t, "bwrap", "bubblewrap")
	t.Parallel()
	r := newHarness(t, func(cfg *Config) {
		cfg.Defaults.Agent.Runtime = groupconfig.Bwrap
		cfg.Runtimes[groupconfig.Bwrap] = runtime.Sandbox{Temp: filepath.Join(cfg.Data, "run", "tmp"), Data: cfg.Data, Network: runtime.NetworkNone}
	})
	run := func(folder, script, topic, want string) {
		t.Helper()
		r.configure(folder, fmt.Sprintf(`{"agent":{"command":%q}}`, tell(`$(`+script+`)`)))
		diff(t, folder+": "+script, r.answered(r.ask("go", group(folder), chat("telegram:"+topic))), []string{want})
	}
	run("main/a/b", "echo private > notes", "1", "")
	run("main/c", "echo private > notes", "2", "")
	run("main", "mv a x; mv c y; mkdir -p a/b c; echo planted | tee a/b/notes > c/notes", "3", "")
	run("main", "cat x/b/notes y/notes", "4", "")
	run("main/a/b", "cat notes", "5", "private")
	run("main/c", "cat notes", "6", "private")
	run("main", "rm -r a; ln -s / a; rm -r c; ln -s ../other c", "7", "")
	run("main/a/b", "cat notes", "8", "private")
	run("main/c", "cat notes", "9", "private")
}
