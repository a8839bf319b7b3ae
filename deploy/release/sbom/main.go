// Sbom prints a software bill of materials, in CycloneDX's JSON, of Go programs: the modules that they are built from,
// as the linker has recorded them, and Go itself. The same programs make the same bytes.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// component is a module or a program.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

// bill has the fields that CycloneDX asks for.
type bill struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

func main() {
	version := flag.String("version", "", "the version of the programs")
	flag.Parse()
	if err := run(os.Stdout, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, version string, programs []string) error {
	if version == "" || len(programs) == 0 {
		return errors.New("usage: sbom -version VERSION PROGRAM…")
	}
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	b.Metadata.Component = component{Type: "application", Name: "arizuko", Version: version}
	for _, path := range programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		b.Components = append(b.Components, component{Type: "application", Name: filepath.Base(path), Version: version},
			module("stdlib", strings.TrimPrefix(info.GoVersion, "go")))
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			b.Components = append(b.Components, module(dep.Path, dep.Version))
		}
	}
	slices.SortFunc(b.Components, func(a, b component) int {
		return strings.Compare(a.Type+a.Name+a.Version,
			b.Type+b.Name+b.Version)
	})
	b.Components = slices.Compact(b.Components)
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(b)
}

func module(path, version string) component {
	return component{Type: "library", Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version}
}
