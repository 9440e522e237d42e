// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	artifactAudience = "satchel-artifacts"
	artifactVolume   = "artifact-token"
	artifactFolder   = "/var/run/secrets/satchel.dev/artifacts"
	rbacVersion      = "rbac.authorization.k8s.io/v1"
)

// authenticatedArtifacts is config/overlays/authenticated-artifacts.
func authenticatedArtifacts(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !o.AuthenticatedArtifacts {
		return objects, nil
	}
	return objects, each(objects, "Deployment", func(d *unstructured.Unstructured) error {
		if d.GetName() == SourceController {
			return addArgs(d, "--artifact-auth=token", "--artifact-audience="+artifactAudience,
				"--artifact-readers=system:serviceaccount:"+DefaultNamespace+":"+DeploymentController)
		}
		return sendToken(d)
	})
}

// sendToken mounts a token for the artifact server into the deployment controller.
func sendToken(d *unstructured.Unstructured) error {
	if err := addArgs(d, "--artifact-token-file="+artifactFolder+"/token"); err != nil {
		return err
	}
	if err := editContainer(d, func(container map[string]any) error {
		return addTo(container, map[string]any{"name": artifactVolume, "mountPath": artifactFolder, "readOnly": true}, "volumeMounts")
	}); err != nil {
		return err
	}
	token := map[string]any{"audience": artifactAudience, "expirationSeconds": int64(3600), "path": "token"}
	return addTo(d.Object, map[string]any{
		"name":      artifactVolume,
		"projected": map[string]any{"sources": []any{map[string]any{"serviceAccountToken": token}}},
	}, inPod("volumes")...)
}

// narrowed are the ClusterRoles that TenantNamespaces bind by namespace, and the controllers that have them.
var narrowed = map[string]string{"satchel-impersonator": DeploymentController, "satchel-secret-reader": SourceController}

// tenants is config/overlays/namespaced-impersonation.
func tenants(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if len(o.TenantNamespaces) == 0 {
		return objects, nil
	}
	objects = without(objects, func(b *unstructured.Unstructured) bool {
		return b.GetKind() == "ClusterRoleBinding" && narrowed[b.GetName()] != ""
	})
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ClusterRoleBinding" })
	for _, tenant := range o.TenantNamespaces {
		for _, role := range []string{"satchel-secret-reader", "satchel-impersonator"} {
			objects = slices.Insert(objects, at, binding("RoleBinding", role, tenant, narrowed[role]))
		}
	}
	return objects, nil
}

// binding gives a controller the ClusterRole of the binding's name.
func binding(kind, name, namespace, controller string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rbacVersion, "kind": kind, "metadata": metadata,
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": controller, "namespace": DefaultNamespace}},
	}}
}
