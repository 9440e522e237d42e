// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// countedRegistry is a registry, and how many requests it got.
type countedRegistry struct {
	host  string
	asked atomic.Int32
}

func newCountedRegistry(t *testing.T) *countedRegistry {
	t.Helper()
	r := &countedRegistry{}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.asked.Add(1)
		handler.ServeHTTP(w, request)
	}))
	t.Cleanup(served.Close)
	r.host = strings.TrimPrefix(served.URL, "http://")
	return r
}

// TestImagePolicyOfFiles: images are fetched and refused by the BundleImagePolicies of --image-policy, without a cluster.
func TestImagePolicyOfFiles(t *testing.T) {
	source, mirror := newCountedRegistry(t), newCountedRegistry(t)
	image, err := crane.Image(map[string][]byte{"manifests/config.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-the-mirror}\n")})
	if err == nil {
		err = crane.Push(image, mirror.host+"/copies/shop:v1.0.0")
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	policy := func(name, rule string) string {
		return "apiVersion: satchel.dev/v1alpha1\nkind: BundleImagePolicy\nmetadata: {name: " + name + ", namespace: platform}\nspec:\n  images:\n  - " + rule + "\n"
	}
	pinned := source.host + "/org/shop@" + digest.String()
	never := "{prefix: \"" + source.host + "/org\", mirrors: [\"" + mirror.host + "/copies\"], source: Never, insecure: true, secretRef: {name: login}"
	t.Chdir(writeFiles(t, map[string]string{
		"never.yaml":  policy("never", never+"}"),
		"tags.yaml":   policy("tags", never+", tags: true}"),
		"signed.yaml": policy("signed", never+", verify: {provider: cosign, secretRef: {name: keys}}}"),
		"deny.yaml":   policy("deny", "{prefix: \""+source.host+"\", deny: true}"),
		"wrong.yaml":  policy("wrong", "{prefix: quay.io, source: Never}"),
		"other.yaml":  strings.Replace(policy("other", "{prefix: quay.io}"), "platform", "shop", 1),
		"none.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"deploy.yaml": "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: shop, namespace: demo}\nspec:\n  serviceAccountName: installer\n" +
			"  source:\n    sources:\n    - image: {reference: \"" + pinned + "\"}\n",
		"catalog.json": `{"schema":"olm.bundle","package":"shop","name":"shop.v1.0.0","image":"` + source.host + `/org/shop:v1.0.0","properties":[{"type":"olm.package","value":{"packageName":"shop","version":"1.0.0"}}]}`,
		"lock.yaml":    "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: shop}\nspec: {serviceAccountName: installer, catalog: {package: shop}}\n",
	}))
	render := []string{"render", "--install-namespace", "demo", pinned}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"render":            {"the digest is the same at the mirror", append(render, "--image-policy", "never.yaml"), kit.ExitOK, "name: of-the-mirror"},
		"render, signed":    {"keys are in the cluster, and that is said", append(render, "--image-policy", "signed.yaml"), kit.ExitOK, "demands a signature"},
		"render, denied":    {"nothing is fetched", append(render, "--image-policy", "deny.yaml"), kit.ExitError, `BundleImagePolicy deny refuses images with the prefix "` + source.host + `"`},
		"render, tag":       {"a mirror without tags does not say what a tag is", []string{"render", "--install-namespace", "demo", source.host + "/org/shop:v1.0.0", "--image-policy", "never.yaml"}, kit.ExitError, "a tag is not asked of its mirrors"},
		"render, manifest":  {"the source of -f is an image, too", []string{"render", "-f", "deploy.yaml", "--image-policy", "never.yaml"}, kit.ExitOK, "name: of-the-mirror"},
		"manifest, signed":  {"keys are in the cluster, and that is said", []string{"render", "-f", "deploy.yaml", "--image-policy", "signed.yaml"}, kit.ExitOK, "demands a signature"},
		"manifest, denied":  {"nothing is fetched", []string{"render", "-f", "deploy.yaml", "--image-policy", "deny.yaml"}, kit.ExitError, "is denied by BundleImagePolicy platform/deny"},
		"resolve":           {"the lock has the name of the source", []string{"resolve", "-f", "lock.yaml", "--write", "lock.yaml", "--catalog=community=catalog.json", "--image-policy", "tags.yaml"}, kit.ExitOK, "has shop.v1.0.0 now"},
		"invalid":           {"as an API server would", append(render, "--image-policy", "wrong.yaml"), kit.ExitError, "source Never needs mirrors"},
		"no policy":         {"a wrong file has no silent effect", append(render, "--image-policy", "none.yaml"), kit.ExitError, "there is no BundleImagePolicy in none.yaml"},
		"two namespaces":    {"which one is shared?", append(render, "--image-policy", "never.yaml", "--image-policy", "other.yaml"), kit.ExitError, `are of the namespaces "platform" and "shop"`},
		"plan, no image":    {"it has no effect there", []string{"plan", "shop", "--image-policy", "never.yaml"}, kit.ExitError, "--image-policy is about images"},
		"render, -, policy": {"standard input is that of -f", append(render, "--image-policy", "-"), kit.ExitError, "not standard input"},
	} {
		got := satchel(t, tc.args...)
		if got.Code != tc.code || !strings.Contains(got.Out+got.Err, tc.want) {
			t.Errorf("%s: %s: got %s", name, tc.reason, got)
		}
	}
	if asked := source.asked.Load(); asked != 0 {
		t.Errorf("the source got %d requests, although it is never contacted", asked)
	}
}
