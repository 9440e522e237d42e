// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list into the guide")

const (
	guide = "../../../../docs/guides/approvals.md"
	begin = "<!-- begin of the list: go test ./internal/apply/plan/escalation -update -->\n"
	end   = "<!-- end of the list -->\n"
)

// T30: the guide has the list that the code goes by.
func TestT30TheGuideHasTheList(t *testing.T) {
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no list", guide)
	}
	want := document()
	if *update {
		if err := os.WriteFile(guide, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("run this test with -update; %s has another list than the code:\n%s", guide, want)
	}
}

// document is the list for people.
func document() string {
	var b strings.Builder
	b.WriteString("\n| Kind | Fields that go on |\n|---|---|\n")
	var rows []string
	for kind, rule := range kinds {
		rows = append(rows, fmt.Sprintf("| %s | %s |\n", kind, sentence(allowed("", rule.fields))))
	}
	slices.Sort(rows)
	b.WriteString(strings.Join(rows, ""))
	b.WriteString("\n| In Pods, and in Pod templates of these kinds | Fields that go on |\n|---|---|\n")
	for _, row := range []struct {
		title string
		names []string
	}{
		{"Pod", slices.Concat(harmlessInPods, byValue(podReaders))},
		{"container", slices.Concat(harmlessInContainers, byValue(containerReaders))},
		{"volumes", slices.Concat(harmlessVolumes, []string{"configMap, secret and persistentVolumeClaim (see below)", "ephemeral with the fields of a claim", "projected without a token for another audience"})},
		{"resources", slices.Concat(harmlessResources, []string{"hugepages-*"})},
		{"securityContext", slices.Concat(harmlessInSecurity, []string{"runAsUser, but not 0", "all restrictions that are added"})},
		{"tolerations", harmlessTolerations},
		{"labels and annotations", slices.Concat([]string{"all without a domain (none in Secrets, ServiceAccounts, Namespaces and ClusterRoles but " + strings.Join(strictNames, ", ") + ")"}, suffixed(harmlessPrefixes), harmlessKeys)},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row.title, sentence(row.names))
	}
	return b.String() + "\n"
}

// byValue are fields of which only some values go on.
func byValue(of readers) []string {
	all := slices.Sorted(maps.Keys(of))
	return []string{"and by their values: `" + strings.Join(all, "`, `") + "`"}
}

func suffixed(prefixes []string) []string {
	var all []string
	for _, prefix := range prefixes {
		all = append(all, prefix+"*")
	}
	return all
}

// sentence joins names in the form of code, if they are names.
func sentence(names []string) string {
	var all []string
	for _, name := range names {
		if !strings.Contains(name, " ") {
			name = "`" + name + "`"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// allowed are the paths of harmless fields.
func allowed(path string, of field) []string {
	switch {
	case of.all:
		return []string{path}
	case of.only != nil:
		return []string{fmt.Sprintf("`%s` (%s)", path, strings.Join(slices.DeleteFunc(slices.Clone(of.only), func(s string) bool { return s == "" }), ", "))}
	case of.check != nil && strings.HasSuffix(path, "spec"):
		return []string{"the Pod (below)"}
	case of.check != nil:
		return []string{path + " (see below)"}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of.below)) {
		if name == "metadata" {
			continue
		}
		all = append(all, allowed(strings.TrimPrefix(path+"."+name, "."), of.below[name])...)
	}
	return all
}
