# Makes a software bill of materials, in CycloneDX's JSON, of what `go version -m -json` prints about programs: the modules
# that they are built from, and Go itself. $version is that of the programs.
def component($type): {type: $type, name: .[0], version: .[1]};
def library: component("library") + {purl: "pkg:golang/\(.[0])@\(.[1])"};
{
  bomFormat: "CycloneDX", specVersion: "1.6", version: 1,
  metadata: {component: (["arizuko", $version] | component("application"))},
  components: ([
    inputs
    | ([.Path | split("/") | last, $version] | component("application")),
      (["stdlib", (.GoVersion | ltrimstr("go"))] | library),
      (.Deps[]? | .Replace // . | [.Path, .Version] | library)
  ] | unique)
}
