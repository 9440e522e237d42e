// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// charted gives the deployment of a cluster values for a chart from objects of its namespace.
func (c playedCluster) charted(from ...v1alpha1.ValuesReference) *v1alpha1.BundleDeployment {
	c.T.Helper()
	var d v1alpha1.BundleDeployment
	if err := c.Client.Get(c.T.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "podinfo"}, &d); err != nil {
		c.T.Fatal(err)
	}
	d.Spec.Path, d.Spec.Helm = "", &v1alpha1.HelmOptions{ValuesFrom: from, Values: &apiextensionsv1.JSON{Raw: []byte(`{"extra": {"a": 1}}`)}}
	if err := c.Client.Update(c.T.Context(), &d); err != nil {
		c.T.Fatal(err)
	}
	return &d
}

// contentAsController is the digest of a chart as the controller converts it, with its account's view of the cluster.
func (c playedCluster) contentAsController(d *v1alpha1.BundleDeployment, dir string, contents spec.Contents) string {
	c.T.Helper()
	pool, err := tenant.NewPool(c.CP.RESTConfig(), tenant.Options{})
	if err != nil {
		c.T.Fatal(err)
	}
	account, err := pool.Client(tenant.Identity{Namespace: c.Namespace, ServiceAccount: "installer"})
	if err != nil {
		c.T.Fatal(err)
	}
	given := spec.Given{Contents: contents}
	if given.Capabilities.KubeVersion, err = account.ServerVersion(c.T.Context()); err != nil {
		c.T.Fatal(err)
	}
	if given.Capabilities.APIVersions, _, err = account.Kinds().Versions(c.T.Context()); err != nil {
		c.T.Fatal(err)
	}
	if given.Values, err = spec.HelmValues(d, contents); err != nil {
		c.T.Fatal(err)
	}
	result, err := convert.Convert(os.DirFS(dir), spec.Conversion(d, given, convert.DefaultLimits()))
	if err != nil {
		c.T.Fatal(err)
	}
	if given.Capabilities.KubeVersion == helm.DefaultKubeVersion || !slices.Contains(given.Capabilities.APIVersions, "satchel.dev/v1alpha1/BundleDeployment") {
		c.T.Errorf("the cluster says nothing of its own: %s, %d versions", given.Capabilities.KubeVersion, len(given.Capabilities.APIVersions))
	}
	digest, err := digest.Content(slices.Concat(result.Objects, plan.Rendered(spec.Hooks(result))), effective.InstallNamespace(d))
	if err != nil {
		c.T.Fatal(err)
	}
	return digest
}

// A chart is previewed with the values that the user may read, and with the capabilities of the cluster: the result is that of
// the controller. Values of Secrets are not shown, and neither is a digest from which they could be guessed.
func TestPlanOfChart(t *testing.T) {
	const secret = "s3cr3t-c4n4ry"
	c, dir := newPlayedCluster(t), chartFolder(t)
	c.make(`{apiVersion: v1, kind: ConfigMap, metadata: {name: base}, data: {values.yaml: "image: {tag: from-base}"}}`)
	d := c.charted(v1alpha1.ValuesReference{Kind: "ConfigMap", Name: "base"})
	contents := spec.Contents{spec.InputRef{Kind: "ConfigMap", Name: "base"}: {"values.yaml": "image: {tag: from-base}"}}
	v := c.planned(kit.ExitNo, "--path", dir)
	if want := c.contentAsController(d, dir, contents); v.Content != want || v.Format != "helm" || len(v.Objects) != 1 {
		t.Errorf("the plan has %s, and the controller %s: %+v", v.Content, want, v)
	}
	c.Want(c.Satchel("plan", "podinfo", "-o", "diff", "--path", dir), kit.ExitNo, "tag: from-base")

	c.charted(v1alpha1.ValuesReference{Kind: "Secret", Name: "login", ValuesKey: "tag", TargetPath: "image.tag"})
	c.Want(c.Satchel("plan", "podinfo", "--path", dir), kit.ExitError, "secret "+c.Namespace+"/login does not exist: create it, or correct spec.helm.valuesFrom[0]")
	c.make(`{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {tag: ` + secret + `}}`)
	if v := c.planned(kit.ExitNo, "--path", dir); v.Content != "" {
		t.Errorf("a digest tells of a Secret: %+v", v)
	}
	for _, args := range [][]string{{"plan"}, {"plan", "--fields"}, {"plan", "-o", "yaml"}, {"plan", "-o", "diff"}} {
		got := c.Satchel(append(append([]string{args[0], "podinfo"}, args[1:]...), "--path", dir)...)
		if said := got.Out + got.Err; got.Code != kit.ExitNo || strings.Contains(said, "c4n4ry") {
			t.Errorf("%v gives a Secret away: %s", args, got)
		}
	}
	c.Want(c.Satchel("plan", "podinfo", "-o", "diff", "--path", dir), kit.ExitNo, "tag: (redacted)")
	c.Want(c.Satchel("plan", "podinfo", "--path", dir), kit.ExitNo, "not shown, because it includes values of Secrets")
}
