// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
	"github.com/satchel-dev/satchel/tests/installation"
)

// TestDocs follows each page as a reader would. SATCHEL_DOCS is a pattern of the only pages to follow; with it, each block of
// commands is logged with the time that it took.
func TestDocs(t *testing.T) {
	only := regexp.MustCompile(os.Getenv("SATCHEL_DOCS"))
	var total tally
	r := newRig(t)
	if _, err := r.visitor(t).shell(t.Context(), "namespace "+trial, "0"); err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	if only.MatchString(walkPage) {
		t.Run(walkPage, func(t *testing.T) {
			needs(t, all[walkPage])
			total.add(r.walk(t, all[walkPage]))
		})
	}
	r.install(t)
	r.publish(t)
	if _, err := r.visitor(t).shell(t.Context(), "samples", "0"); err != nil {
		t.Fatal(err)
	}
	for _, page := range executed(all) {
		if !only.MatchString(page.Name) || page.Name == walkPage {
			continue
		}
		t.Run(page.Name, func(t *testing.T) {
			needs(t, page)
			total.add(r.read(t, page))
		})
	}
	t.Logf("blocks: %d of commands ran, %d of manifests and output were checked, %d of text are for people, %d were left out:\n%s",
		total.ran, total.checked, total.shown, len(total.skipped), strings.Join(total.skipped, "\n"))
}

// needs skips a page that takes a program which is not on this machine.
func needs(t *testing.T, page markdown.Page) {
	t.Helper()
	if program, needed := page.Mark("needs"); needed {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s on this machine", program)
		}
	}
}

// visitor is a reader of no page.
func (r *rig) visitor(t *testing.T) *reader {
	t.Helper()
	return &reader{rig: r, home: t.TempDir()}
}

// publish puts the bundles of the examples in the registry. The gadget is the sample operator under other
// names, so that both can be installed.
func (r *rig) publish(t *testing.T) {
	t.Helper()
	bundles := filepath.Join(installation.Root(), "tests", "bundles")
	for version, folder := range map[string]string{"v1.4.0": "v0.1.0", "v2.0.0": "v0.2.0"} {
		r.rename(t, filepath.Join(bundles, "sample-operator", folder), r.file("bundles/gadget/"+version))
	}
	for _, image := range []struct{ folder, as string }{
		{"sample-operator/v0.1.0", "bundles/sample-operator:v0.1.0"},
		{"sample-operator/v0.2.0", "bundles/sample-operator:v0.2.0"},
		{r.file("bundles/gadget/v1.4.0"), "bundles/gadget:v1.4.0"},
		{r.file("bundles/gadget/v2.0.0"), "bundles/gadget:v2.0.0"},
		{"sample-operator/v0.1.0", "org/operator-bundle:v1.2.3"},
		{"greeter", "bundles/greeter:v1"},
		{"greeter", "org/bundle:v2"},
	} {
		if !filepath.IsAbs(image.folder) {
			image.folder = filepath.Join(bundles, image.folder)
		}
		if _, err := r.registry.Push(t.Context(), image.as, os.DirFS(image.folder)); err != nil {
			t.Fatal(err)
		}
	}
}

// rename copies the sample operator as the gadget.
func (r *rig) rename(t *testing.T, from, to string) {
	t.Helper()
	names := strings.NewReplacer("sample-operator", "gadget", "samples.satchel.dev", "gadgets.example.org",
		"greetings", "gadgets", "greeting", "gadget", "Greetings", "Gadgets", "Greeting", "Gadget")
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		target := filepath.Join(to, names.Replace(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, []byte(names.Replace(string(text))), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReader shows that a page that is wrong fails, and for which reason.
func TestReader(t *testing.T) {
	p := &reader{rig: &rig{servers: &servers{names: strings.NewReplacer("a.example.org", "b"), back: strings.NewReplacer()}, cp: nil}, home: t.TempDir()}
	for name, tc := range map[string]struct {
		reason string
		step   markdown.Step
		want   string
	}{
		"no language": {"it is unknown what to do with it", markdown.Step{Text: "x"}, "not of \"\""},
		"no reason":   {"what is left out is told", markdown.Step{Language: "sh", Marks: []markdown.Mark{{Name: "skip"}}}, "say why"},
		"twice":       {"the second value would win in silence", markdown.Step{Language: "yaml", Text: "a: 1\na: 2\n"}, "already set"},
		"no kind":     {"it cannot be tried", markdown.Step{Language: "yaml", Text: "spec: {}\n"}, "of what kind"},
		"not printed": {"the output has changed", markdown.Step{Language: "text", Text: "hello\n", Marks: []markdown.Mark{{Name: "output"}}}, "not, or not at its place"},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.follow(context.Background(), tc.step)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
