// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// written is a manifest in JSON; a part that is no text of JSON is put in as it is.
func written(version, kind, name, namespace string) string {
	text := func(part string) string {
		if part == "true" || part == "null" || part == "7" || part == "[]" {
			return part
		}
		quoted, _ := json.Marshal(part)
		return string(quoted)
	}
	return `{"apiVersion": ` + text(version) + `, "kind": ` + text(kind) + `, "metadata": {"name": ` + text(name) + `, "namespace": ` + text(namespace) + `}}`
}

// TestT7Identity: what becomes part of a request's path cannot lead elsewhere. Each wrong part is one problem with file and
// object; what API servers accept is accepted.
func TestT7Identity(t *testing.T) {
	for name, c := range map[string]struct{ reason, version, kind, object, namespace, want string }{
		"plain":             {"the usual", "apps/v1", "Deployment", "web", "shop", ""},
		"role":              {"names of RBAC objects are free", "rbac.authorization.k8s.io/v1", "Role", "system:Thing_1@x y", "shop", ""},
		"no namespace":      {"set later", "v1", "Pod", "a", "null", ""},
		"version with dash": {"CRDs may have it", "example.org/v1-beta", "Widget", "a", "", ""},
		"longest name":      {"253 bytes are allowed", "v1", "Pod", strings.Repeat("x", 253), "", ""},
		"longer name":       {"more are not", "v1", "Pod", strings.Repeat("x", 254), "", "longer than 253 bytes"},
		"dots":              {"the parent of a path", "v1", "Pod", "..", "shop", "metadata.name is . or .."},
		"dot":               {"the path itself", "v1", "Pod", ".", "shop", "metadata.name is . or .."},
		"subresource":       {"another object's proxy", "v1", "Pod", "evil/proxy/x", "shop", "contains a slash"},
		"climbing":          {"another kind", "v1", "Pod", "../secrets/x", "shop", "contains a slash"},
		"escape":            {"decoded later", "v1", "Pod", "a%2fb", "shop", "per cent sign"},
		"control":           {"lines of logs", "v1", "Pod", "a\nb", "shop", "control character"},
		"boolean name":      {"y without quotation marks", "v1", "Pod", "true", "shop", "metadata.name is a boolean (YAML reads y"},
		"number name":       {"7 without quotation marks", "v1", "Pod", "7", "shop", "metadata.name is a number"},
		"list name":         {"no text", "v1", "Pod", "[]", "shop", "metadata.name is a list"},
		"null name":         {"none", "v1", "Pod", "null", "shop", "no metadata.name"},
		"namespace slash":   {"another namespace", "v1", "Pod", "a", "x/../kube-system", "metadata.namespace is not a DNS label"},
		"namespace dots":    {"out of it", "v1", "Pod", "a", "..", "metadata.namespace is not a DNS label"},
		"boolean namespace": {"it would be taken for none", "v1", "Pod", "a", "true", "metadata.namespace is a boolean"},
		"kind":              {"no kind is a path", "v1", "Pod/../x", "a", "", "kind is not made of letters"},
		"boolean kind":      {"no text", "v1", "true", "a", "", "kind is a boolean"},
		"group":             {"nor a group", "../api/v1", "Pod", "a", "", "not of the form group/version"},
		"group dots":        {"nor a group", "../v1", "Pod", "a", "", "group of the apiVersion"},
		"empty group":       {"the core group has no slash", "/v1", "Pod", "a", "", "not of the form group/version"},
		"upper-case group":  {"groups are DNS names", "Example.org/v1", "Pod", "a", "", "group of the apiVersion"},
		"version":           {"nor a version", "apps/..", "Pod", "a", "", "version of the apiVersion"},
		"core version":      {"nor the only part", "..", "Pod", "a", "", "version of the apiVersion"},
		"number version":    {"no text", "7", "Pod", "a", "", "apiVersion is a number"},
	} {
		t.Run(name, func(t *testing.T) {
			read, problems := read("a.json", written(c.version, c.kind, c.object, c.namespace), manifest.Limits{})
			if len(problems) > 0 || len(read) != 1 {
				t.Fatalf("%d objects, %v", len(read), problems)
			}
			got := manifest.Identities(read)
			if c.want == "" {
				if len(got) > 0 {
					t.Errorf("%s: refused: %v", c.reason, got)
				}
				return
			}
			if len(got) != 1 || got[0].File != "a.json" || got[0].Rule != manifest.RuleIdentity || got[0].Object == "" || !strings.Contains(got[0].Message, c.want) {
				t.Errorf("%s: got %+v, want %q", c.reason, got, c.want)
			}
			for _, p := range got {
				if line := p.String(); strings.Contains(line, "\n") || len(line) > 600 {
					t.Errorf("%s: a message of %d bytes: %q", c.reason, len(line), line)
				}
			}
		})
	}
}

// TestUnquotedName: the mistake of M8 with the words that people write.
func TestUnquotedName(t *testing.T) {
	read, _ := read("a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: y}", manifest.Limits{})
	got := manifest.Identities(read)
	if len(got) != 1 || !strings.Contains(got[0].String(), "Namespace: metadata.name is a boolean") || !strings.Contains(got[0].Remedy, "quotation marks") {
		t.Errorf("got %v", got)
	}
}
