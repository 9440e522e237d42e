// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// othersKind is a kind of another installer.
type othersKind struct {
	group, version, kind string
	namespaced           bool
	optional             bool // left out, with a note, if the user may not list it
}

func (k othersKind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
}

// othersKinds are what migrate --cluster reads. Of a kind with several versions the first one that is served counts.
var othersKinds = []othersKind{
	{"core.rukpak.io", "v1alpha2", "BundleDeployment", false, false},
	{"core.rukpak.io", "v1alpha1", "BundleDeployment", false, false},
	{"core.rukpak.io", "v1alpha1", "Bundle", false, false},
	{"operators.coreos.com", "v1alpha1", "Subscription", true, false},
	{"operators.coreos.com", "v1alpha1", "CatalogSource", true, true},
	{"operators.coreos.com", "v1", "OperatorGroup", true, false},
	{"operators.coreos.com", "v1alpha1", "InstallPlan", true, false},
	{"operators.coreos.com", "v1alpha1", "ClusterServiceVersion", true, false},
	{"olm.operatorframework.io", "v1", "ClusterExtension", false, false},
	{"olm.operatorframework.io", "v1alpha1", "ClusterExtension", false, false},
	{"olm.operatorframework.io", "v1", "ClusterCatalog", false, true},
	{"config.openshift.io", "v1", "ImageDigestMirrorSet", false, true},
	{"config.openshift.io", "v1", "ImageTagMirrorSet", false, true},
	{"operator.openshift.io", "v1alpha1", "ImageContentSourcePolicy", false, true},
	{"olm.operatorframework.io", "v1", "ClusterExtensionRevision", false, false},
	{"olm.operatorframework.io", "v1", "ClusterObjectSet", false, false},
}

// othersMapper maps them to their resources.
func othersMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range othersKinds {
		scope := meta.RESTScopeRoot
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(k.gvk(), scope)
	}
	return mapper
}

// installedByOthers reads the objects of other installers, as the user.
func installedByOthers(ctx context.Context, a *kit.App, everywhere bool) ([]manifest.Manifest, error) {
	config, err := a.RestConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := a.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{Mapper: othersMapper()})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	var found []manifest.Manifest
	served := map[string]bool{}
	for _, k := range othersKinds {
		if served[k.group+"/"+k.kind] {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.gvk().GroupVersion().WithKind(k.kind + "List"))
		options := &client.ListOptions{}
		if k.namespaced && !everywhere {
			options.Namespace = namespace
		}
		if err := c.List(ctx, list, options); kit.IsAPIMissing(err) {
			continue
		} else if k.optional && apierrors.IsForbidden(err) {
			a.Note([]string{"you may not list the " + k.kind + "s of " + k.group + ": they are left out"})
			continue
		} else if err != nil {
			return nil, fmt.Errorf("listing the %ss of %s: %w", k.kind, k.group, err)
		}
		served[k.group+"/"+k.kind] = true
		for i := range list.Items {
			found = append(found, manifest.Manifest{Object: &list.Items[i]})
		}
	}
	if len(served) == 0 {
		fmt.Fprintf(a.Streams.ErrOut, "The cluster serves none of the APIs of RukPak and OLM: %s.\n", strings.Join(othersGroups(), ", "))
	}
	return found, nil
}

func othersGroups() []string {
	return []string{"core.rukpak.io", "operators.coreos.com", "olm.operatorframework.io"}
}
