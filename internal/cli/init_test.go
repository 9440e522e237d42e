// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/author"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/clirig"
)

const (
	initConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	initOperator  = "../../tests/bundles/sample-operator/v0.1.0"
)

// laidOut writes files into a folder of their own.
func laidOut(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		where := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(where), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(where, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// filesIn are the files below a folder.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// operatorProject are the files of an Operator SDK project that init reads.
func operatorProject(t *testing.T, withBundle bool) map[string]string {
	t.Helper()
	files := map[string]string{
		"PROJECT":                           "domain: example.org\nlayout: [go.kubebuilder.io/v4]\nprojectName: sample\nplugins:\n  manifests.sdk.operatorframework.io/v2: {}\nversion: \"3\"\n",
		"Makefile":                          "bundle:\n",
		"config/default/kustomization.yaml": "namespace: sample-system\nnamePrefix: sample-\nresources: [../manager]\n",
		"config/manager/kustomization.yaml": "resources: [manager.yaml]\n",
		"config/manager/manager.yaml":       initConfigMap,
		"config/manifests/bases/sample.clusterserviceversion.yaml": "kind: ClusterServiceVersion\n",
	}
	if withBundle {
		for name, content := range readTree(t, initOperator) {
			files["bundle/"+name] = content
		}
		files["bundle/tests/scorecard/config.yaml"] = "kind: Configuration\n"
	}
	return files
}

func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name := range strings.SplitSeq(filesIn(t, dir), " ") {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(content)
	}
	return found
}

// TestInit covers the inputs of an author. The written bundle validates, and renders the same objects.
func TestInit(t *testing.T) {
	operator, err := filepath.Abs(initOperator)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason string
		from   map[string]string // files of the folder SRC
		args   []string
		want   string // files of the bundle
		format string
		said   string
	}{
		"nothing": {"an example to begin with", nil, nil, "manifests/deployment.yaml manifests/service.yaml manifests/serviceaccount.yaml", "plain+v0", "holds an example"},
		"example": {"in another format", nil, []string{"--format", "kustomize"}, "deployment.yaml kustomization.yaml service.yaml serviceaccount.yaml", "kustomize", ""},
		"folder": {"with the folders in it; what is no manifest is left out, and said", map[string]string{"a.yaml": initConfigMap, "sub/b.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}`, "README.md": "", ".git/config.yaml": ""}, []string{"--from", "SRC"},
			"manifests/a.yaml manifests/sub/b.json", "plain+v0", "left out: README.md"},
		"manifests": {"a folder manifests/ is what counts", map[string]string{"manifests/a.yaml": initConfigMap, "b.yaml": "x"}, []string{"--from", "SRC"}, "manifests/a.yaml", "plain+v0", ""},
		"files":     {"one by one", map[string]string{"a.yaml": initConfigMap, "b.yaml": strings.Replace(initConfigMap, "name: a", "name: b", 1), "c.yaml": "x"}, []string{"--from", "SRC/a.yaml", "--from", "SRC/b.yaml"}, "manifests/a.yaml manifests/b.yaml", "plain+v0", ""},
		"kustomize": {"a kustomization may use any of its files", map[string]string{"kustomization.yaml": "resources: [x/a.txt.yaml]\nconfigMapGenerator:\n- name: g\n  files: [g.conf]\n", "x/a.txt.yaml": initConfigMap, "g.conf": "1"}, []string{"--from", "SRC"},
			"g.conf kustomization.yaml x/a.txt.yaml", "kustomize", ""},
		"overlay": {"from the folder that holds its base", map[string]string{"base/kustomization.yaml": "resources: [a.yaml]", "base/a.yaml": initConfigMap, "eu/kustomization.yaml": "resources: [../base]\nnameSuffix: -eu\n"}, []string{"--from", "SRC", "--path", "eu", "--format", "kustomize"}, "base/a.yaml base/kustomization.yaml eu/kustomization.yaml", "kustomize", ""},
		"chart": {"with all of its files", map[string]string{"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "values.yaml": "a: 1\n", "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-a\"}\n", "README.md": "x"}, []string{"--from", "SRC"},
			"Chart.yaml README.md templates/a.yaml values.yaml", "helm", ""},
		"operator": {"a bundle of OLM", nil, []string{"--from", operator}, strings.Join(author.SortedKeys(readTree(t, initOperator)), " "), "registry+v1", "taken are the folders manifests and metadata"},
		"project":  {"what make bundle wrote", operatorProject(t, true), []string{"--from", "SRC"}, strings.Join(author.SortedKeys(readTree(t, initOperator)), " "), "registry+v1", "is a project of Operator SDK sample.\ntaken are bundle/manifests and bundle/metadata"},
		"config":   {"a project without a bundle", operatorProject(t, false), []string{"--from", "SRC"}, "config/default/kustomization.yaml config/manager/kustomization.yaml config/manager/manager.yaml config/manifests/bases/sample.clusterserviceversion.yaml", "kustomize", "make bundle makes a registry+v1 bundle of it"},
		"chosen":   {"config/ of a project with a bundle", operatorProject(t, true), []string{"--from", "SRC", "--format", "kustomize"}, "config/default/kustomization.yaml config/manager/kustomization.yaml config/manager/manager.yaml config/manifests/bases/sample.clusterserviceversion.yaml", "kustomize", ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := laidOut(t, c.from)
			t.Chdir(t.TempDir())
			args := []string{"bundle", "init", "shop", "--image", "registry.example.org/shop:v1"}
			for _, arg := range c.args {
				args = append(args, strings.Replace(arg, "SRC", source, 1))
			}
			got := satchel(t, args...)
			if got.Code != kit.ExitOK || !strings.Contains(got.Err, c.said) {
				t.Fatalf("%s: %s", c.reason, got)
			}
			if files := filesIn(t, "shop/bundle"); files != c.want {
				t.Errorf("%s: the bundle is\n%s, want\n%s", c.reason, files, c.want)
			}
			d := readDeployment(t, "shop/deploy/bundledeployment.yaml")
			if string(d.Spec.Format) != c.format || d.Spec.Source.Sources[0].Image.Reference != "registry.example.org/shop:v1" || d.Namespace != "shop" || d.Spec.ServiceAccountName != "installer" {
				t.Errorf("the deployment is %+v", d.Spec)
			}
			if got := satchel(t, "validate", "shop/bundle", "--path", d.Spec.Path, "--install-namespace", "shop"); got.Code != kit.ExitOK {
				t.Errorf("what was written does not validate: %s", got)
			}
			rights, err := os.ReadFile("shop/permissions/rbac.yaml")
			look := []string{"rbac", "shop/bundle", "--path", d.Spec.Path, "--install-namespace", "shop", "--name", "shop"}
			if c.format == "helm" {
				look = append(look, "--release-name", "shop")
			}
			want := satchel(t, look...)
			if err != nil || string(rights) != want.Out {
				t.Errorf("the rights are not those of rbac: %v\n%s", err, want)
			}
		})
	}
}

func readDeployment(t *testing.T, name string) *v1alpha1.BundleDeployment {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if clirig.Admitted(t, string(text)) != 1 {
		t.Errorf("it is no BundleDeployment:\n%s", text)
	}
	d := &v1alpha1.BundleDeployment{}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return d
}

// TestInitNeverOverwrites covers existing files.
func TestInitNeverOverwrites(t *testing.T) {
	source := laidOut(t, map[string]string{"a.yaml": initConfigMap, "b.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: b}\n"})
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	first := satchel(t, "bundle", "init", "shop", "--from", source).String()
	if got := satchel(t, "bundle", "init", "shop", "--from", source); got.Code != kit.ExitOK || !strings.Contains(got.Out, "as before  bundle/manifests/a.yaml") {
		t.Errorf("the second time is not the first: %s", got)
	}
	if err := os.WriteFile("shop/bundle/manifests/a.yaml", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(source, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	before := readTree(t, "shop")
	got := satchel(t, "bundle", "init", "shop", "--from", source)
	if got.Code != kit.ExitError || !strings.Contains(got.Err, "2 files in shop would be replaced: bundle/manifests/a.yaml, permissions/rbac.yaml; give another folder with --dir, or --force to replace them") {
		t.Errorf("%s", got)
	}
	if got := satchel(t, "bundle", "init", "shop", "--from", source, "--force", "--dry-run"); got.Code != kit.ExitOK || !strings.HasPrefix(got.Out, "Would write") {
		t.Errorf("%s", got)
	}
	if after := readTree(t, "shop"); len(after) != len(before) || after["bundle/manifests/a.yaml"] != "mine" || after["permissions/rbac.yaml"] != before["permissions/rbac.yaml"] {
		t.Errorf("something was written: %v", after)
	}
	forced := satchel(t, "bundle", "init", "shop", "--from", source, "--force").String()
	if after := readTree(t, "shop"); after["bundle/manifests/a.yaml"] != initConfigMap || after["bundle/manifests/b.yaml"] == "" {
		t.Errorf("%v", after)
	}
	t.Chdir(home)
	golden(t, "init/first", first)
	golden(t, "init/forced", forced)
}

// TestInitFromGit checks that the path of the bundle is that in its repository.
func TestInitFromGit(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if got := satchel(t, "bundle", "init", "shop", "--dir", "apps/shop", "--git", "https://git.example.org/fleet.git", "--branch", "release", "-n", "platform"); got.Code != kit.ExitOK {
		t.Fatal(got)
	}
	d := readDeployment(t, "apps/shop/deploy/bundledeployment.yaml")
	git := d.Spec.Source.Sources[0].Git
	if git == nil || git.URL != "https://git.example.org/fleet.git" || git.Ref.Branch != "release" || git.Path != "apps/shop/bundle" {
		t.Errorf("%+v", git)
	}
	if d.Namespace != "platform" || d.Spec.Target.Namespace != "shop" {
		t.Errorf("in %s, installed in %s", d.Namespace, d.Spec.Target.Namespace)
	}
}

// TestInitRefuses checks that nothing is written after an error.
func TestInitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		from map[string]string
		args []string
		want string
	}{
		"no name":      {nil, []string{"bundle", "init"}, "bundle init needs one name, got none"},
		"a bad name":   {nil, []string{"bundle", "init", "Shop"}, `the name "Shop" cannot be that of a BundleDeployment`},
		"two sources":  {nil, []string{"bundle", "init", "shop", "--image", "a/b", "--git", "https://x"}, "from --image or from --git"},
		"no image":     {nil, []string{"bundle", "init", "shop", "--image", "A B"}, `--image "A B" is no reference`},
		"no URL":       {nil, []string{"bundle", "init", "shop", "--git", "git@host:org/repo"}, "is no URL that begins with https://"},
		"a branch":     {nil, []string{"bundle", "init", "shop", "--branch", "x"}, "--branch has no effect without --git"},
		"no file":      {nil, []string{"bundle", "init", "shop", "--from", "SRC/none"}, "no such file"},
		"no manifest":  {map[string]string{"a.txt": ""}, []string{"bundle", "init", "shop", "--from", "SRC/a.txt"}, "no manifest by its name"},
		"broken":       {map[string]string{"a.yaml": "kind: X"}, []string{"bundle", "init", "shop", "--from", "SRC"}, "the object has no apiVersion"},
		"ambiguous":    {map[string]string{"Chart.yaml": "name: x", "kustomization.yaml": ""}, []string{"bundle", "init", "shop", "--from", "SRC"}, "choose with --format helm or --format kustomize"},
		"twice a name": {map[string]string{"x/a.yaml": initConfigMap, "y/a.yaml": initConfigMap}, []string{"bundle", "init", "shop", "--from", "SRC/x/a.yaml", "--from", "SRC/y/a.yaml"}, "two files would be manifests/a.yaml"},
		"one folder":   {map[string]string{"x/a.yaml": initConfigMap, "y/b.yaml": initConfigMap}, []string{"bundle", "init", "shop", "--from", "SRC/x", "--from", "SRC/y", "--format", "kustomize"}, "needs one folder"},
		"no bundle":    {operatorProject(t, false), []string{"bundle", "init", "shop", "--from", "SRC", "--format", "registry+v1"}, "without a bundle/ (its base in config/manifests/bases is no bundle yet): run make bundle"},
		"plain":        {operatorProject(t, true), []string{"bundle", "init", "shop", "--from", "SRC", "--format", "plain+v0"}, "dist/install.yaml"},
		"a chart":      {nil, []string{"bundle", "init", "shop", "--format", "helm"}, "helm create"},
		"an operator":  {nil, []string{"bundle", "init", "shop", "--format", "registry+v1"}, "Operator SDK"},
	} {
		t.Run(name, func(t *testing.T) {
			source := laidOut(t, c.from)
			t.Chdir(t.TempDir())
			for i := range c.args {
				c.args[i] = strings.Replace(c.args[i], "SRC", source, 1)
			}
			got := satchel(t, c.args...)
			if got.Code != kit.ExitError || !strings.Contains(got.Err, c.want) {
				t.Errorf("%s", got)
			}
			if left := filesIn(t, "."); left != "" {
				t.Errorf("%s was written", left)
			}
		})
	}
}

// TestInitOfAPackage makes a bundle of a packaged chart.
func TestInitOfAPackage(t *testing.T) {
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressor)
	for name, content := range map[string]string{"shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "shop/templates/a.yaml": initConfigMap} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compressor.Close()); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(laidOut(t, map[string]string{"shop-1.0.0.tgz": packed.String()}), "shop-1.0.0.tgz")
	t.Chdir(t.TempDir())
	if got := satchel(t, "bundle", "init", "shop", "--from", source); got.Code != kit.ExitOK || filesIn(t, "shop/bundle") != "shop-1.0.0.tgz" {
		t.Fatalf("%s", got)
	}
	if d := readDeployment(t, "shop/deploy/bundledeployment.yaml"); d.Spec.Format != v1alpha1.FormatHelm {
		t.Errorf("the format is %q", d.Spec.Format)
	}
	if got := satchel(t, "validate", "shop/bundle"); got.Code != kit.ExitOK {
		t.Errorf("%s", got)
	}
	if got := satchel(t, "bundle", "init", "other", "--from", source, "--format", "plain+v0"); got.Code != kit.ExitError || !strings.Contains(got.Err, "unpack it") {
		t.Errorf("%s", got)
	}
}
