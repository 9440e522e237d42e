// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/clirig"
)

const inputs = "testdata/manifests/"

// TestManifests compares the translations of the other installers' manifests, in all versions, with the golden files.
func TestManifests(t *testing.T) {
	for name, args := range map[string][]string{
		"rukpak-v1alpha1": {inputs + "rukpak-v1alpha1.yaml", "--install-namespace", "demo", "--image", "uploaded=registry.example.org/uploaded:v1"},
		"rukpak-v1alpha2": {inputs + "rukpak-v1alpha2.yaml", "-n", "platform"},
		"olm-v0":          {inputs + "olm-v0.yaml"},
		"olm-v0-manifest": {inputs + "olm-v0-manifest.yaml", "--image", "operators/gadget=registry.example.org/gadget/bundle:v1.2.0", "--service-account", "me"},
		"olm-v1":          {inputs + "olm-v1.yaml"},
		"catalogs":        {inputs + "catalogs.yaml", "--catalog-namespace", "shared"},
		"mirrors":         {inputs + "mirrors.yaml"},    // C63
		"registries":      {inputs + "registries.conf"}, // C63
		"broken":          {inputs + "broken.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			got := migrate(t, append([]string{"manifests"}, args...)...)
			clirig.Golden(t, "manifests/"+name, got.String())
			if again := migrate(t, append([]string{"manifests"}, args...)...); again != got {
				t.Errorf("the second time differs:\n%s", again)
			}
			if name != "broken" && (got.Code != kit.ExitOK || !strings.Contains(got.Out, "kind: Bundle")) {
				t.Errorf("nothing is migrated: %s", got)
			}
			if got.Code == kit.ExitOK && clirig.Admitted(t, got.Out) == 0 {
				t.Error("nothing of Satchel's is in it")
			}
		})
	}
}

// TestManifestsStandardInput checks that standard input and a folder give the same result as files.
func TestManifestsStandardInput(t *testing.T) {
	text, err := os.ReadFile(inputs + "olm-v0.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := Run(t.Context(), kit.Program{
		Path: File, Now: time.Now,
		Streams: genericiooptions.IOStreams{In: bytes.NewReader(text), Out: &out, ErrOut: &errOut},
	}, []string{"manifests", "-"})
	file := migrate(t, "manifests", inputs+"olm-v0.yaml")
	if want := strings.ReplaceAll(file.Out, inputs+"olm-v0.yaml", "standard-input"); code != kit.ExitOK || out.String() != want {
		t.Errorf("exit %d\n%s\nwant\n%s", code, &out, want)
	}
	dir := clirig.WriteFiles(t, map[string]string{"in/sub.yaml": string(text), "README.md": "# not a manifest"})
	got := migrate(t, "manifests", dir)
	if want := strings.ReplaceAll(file.Out, inputs+"olm-v0.yaml", dir+"/in/sub.yaml"); got.Out != want {
		t.Errorf("got %s\nwant\n%s", got, want)
	}
}

// TestManifestsJSON checks that JSON has the same objects, with their notes on standard error.
func TestManifestsJSON(t *testing.T) {
	got := migrate(t, "manifests", inputs+"olm-v1.yaml", "-o", "json")
	var list struct{ Items []v1alpha1.BundleDeployment }
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil || len(list.Items) != 4 {
		t.Fatalf("%v: %s", err, got)
	}
	first := list.Items[1] // after the BundleCatalog
	if first.Namespace != "gadget-system" || first.Spec.ServiceAccountName != "gadget-installer" || first.Spec.Apply.CRDs.UpgradeSafety != v1alpha1.EnforcementNone {
		t.Errorf("got %+v", first)
	}
	if !strings.Contains(got.Err, "Warning: ClusterExtension gadget (testdata/manifests/olm-v1.yaml, document 2): spec.catalog.lock keeps gadget-operator.v1.2.0") {
		t.Errorf("the notes are missing: %s", got.Err)
	}
}

func TestManifestsRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"nothing":     {"what is meant?", nil, "manifests needs files, folders, - for standard input, or --cluster; see kubectl satchel-migrate manifests --help"},
		"twice":       {"it can be read once", []string{"-", "-"}, "standard input can be read once; see kubectl satchel-migrate manifests --help"},
		"everywhere":  {"a flag without meaning", []string{"a.yaml", "-A"}, "-A is about a cluster: add --cluster, or leave it out; see kubectl satchel-migrate manifests --help"},
		"no pair":     {"the form", []string{"a.yaml", "--image", "a"}, "--image a is not NAME=IMAGE; see kubectl satchel-migrate manifests --help"},
		"no image":    {"the form", []string{"a.yaml", "--image", "a=B C"}, `--image a=B C: "B C" is not an image reference such as quay.io/org/bundle:v1.2.3; see kubectl satchel-migrate manifests --help`},
		"two images":  {"which one?", []string{"a.yaml", "--image", "a=b", "--image", "a=c"}, "--image is given twice for a; see kubectl satchel-migrate manifests --help"},
		"no file":     {"the file is named", []string{"none.yaml"}, "reading none.yaml: no such file or directory"},
		"typing slip": {"an image for nothing", []string{inputs + "olm-v1.yaml", "--image", "gagdet=b:v1"}, "nothing is migrated, 1 problem:\n  - an image is given for \"gagdet\", and nothing that is migrated has that name; correct the name"},
		"no object":   {"file and document", []string{clirig.WriteFiles(t, map[string]string{"a.yaml": "---\n{a: b}\n---\n[1]\n"}) + "/a.yaml"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := migrate(t, append([]string{"manifests"}, tc.args...)...)
			if tc.want == "" {
				if got.Code != kit.ExitError || !strings.Contains(got.Err, "a.yaml (document 1): the object has no apiVersion") || !strings.Contains(got.Err, "a.yaml (document 2): this is a list, not an object") {
					t.Errorf("%s: %s", tc.reason, got)
				}
				return
			}
			if got.Code != kit.ExitError || got.Out != "" || got.Err != "Error: "+tc.want+"\n" {
				t.Errorf("%s: %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestManifestsHostile checks that strings of a manifest cannot control the terminal, and cannot end a comment.
func TestManifestsHostile(t *testing.T) {
	bad := clirig.Quoted(t, "a"+clirig.Steering+"\nkind: Secret")
	dir := clirig.WriteFiles(t, map[string]string{"a" + clirig.Steering + ".yaml": `
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: gadget, namespace: operators, labels: {a: ` + bad + `}}
spec: {name: ` + bad + `, channel: ` + bad + `, ` + bad + `: 1, installPlanApproval: ` + bad + `, source: ` + bad + `}
`})
	for _, args := range [][]string{{"--image", "gadget=b:v1"}, {"--image", "gadget=b:v1", "-o", "json"}, {}} {
		got := migrate(t, append([]string{"manifests", dir}, args...)...)
		if odd := clirig.HiddenIn(got.Out) + clirig.HiddenIn(got.Err); odd != "" {
			t.Errorf("%v: %s", args, odd)
		}
		if strings.Contains(got.Out, "\nkind: Secret") {
			t.Errorf("%v: a line of the manifest's:\n%s", args, got.Out)
		}
	}
}
