// Words finds words and forms that this project does not use, and names the plain ones.
//
//	go run ./deploy/lint/words [path ...]
//
// The list is words.txt beside this file: a line is a regular expression, a tab, and what to
// write instead. A line that begins with "except" and a path prefix starts a block of exceptions.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed words.txt
var list string

// rule is one line of the list.
type rule struct {
	pattern *regexp.Regexp
	remedy  string
	only    string   // extension of the files it is for, "" for all
	except  []string // path prefixes it does not hold for
}

func main() {
	rules, err := parse(list)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	files, err := tracked(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for _, finding := range check(rules, file, text) {
			fmt.Println(finding)
			found++
		}
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "%d words to replace; the list is deploy/lint/words/words.txt\n", found)
		os.Exit(1)
	}
}

// parse reads the list: "pattern<TAB>remedy", with "[.ext] " before the pattern for files of one
// kind, and indented lines "except path" below for path prefixes the rule does not hold for.
func parse(list string) (rules []rule, err error) {
	for n, line := range strings.Split(list, "\n") {
		if path, ok := strings.CutPrefix(line, "\texcept "); ok && len(rules) > 0 {
			last := &rules[len(rules)-1]
			last.except = append(last.except, strings.Fields(path)[0])
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, remedy, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(remedy) == "" {
			return nil, fmt.Errorf("words.txt:%d: want a pattern, a tab and what to write instead", n+1)
		}
		r := rule{remedy: strings.TrimSpace(remedy)}
		if rest, ok := strings.CutPrefix(pattern, "["); ok && strings.HasPrefix(rest, ".") {
			r.only, pattern, _ = strings.Cut(rest, "] ")
		}
		if r.pattern, err = regexp.Compile(pattern); err != nil {
			return nil, fmt.Errorf("words.txt:%d: %w", n+1, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// check returns one line for each finding in a file: place, word, remedy.
func check(rules []rule, file string, text []byte) (findings []string) {
	for n, line := range bytes.Split(text, []byte("\n")) {
		for _, r := range rules {
			if !r.appliesTo(file) {
				continue
			}
			if word := r.pattern.Find(line); word != nil {
				findings = append(findings, fmt.Sprintf("%s:%d: %q: %s", file, n+1, word, r.remedy))
			}
		}
	}
	return findings
}

func (r *rule) appliesTo(file string) bool {
	if r.only != "" && filepath.Ext(file) != r.only {
		return false
	}
	for _, prefix := range r.except {
		if strings.HasPrefix(file, prefix) {
			return false
		}
	}
	return true
}

// tracked lists the text files that git knows below the paths, all of the work tree by default.
func tracked(paths []string) (files []string, err error) {
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, paths...)
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		file := lines.Text()
		if _, err := os.Stat(file); err != nil {
			continue // deleted, not committed yet
		}
		switch filepath.Ext(file) {
		case ".go", ".md", ".sh", ".yml", ".yaml", ".sql", ".html", ".js", ".css":
			if !strings.Contains(file, "deploy/lint/words/") && !strings.Contains(file, "/testdata/") {
				files = append(files, file)
			}
		}
	}
	return files, lines.Err()
}
