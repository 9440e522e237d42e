// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/clusterprofile"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// clusterProfiles are the clusters of ClusterProfiles, which a cluster manager writes.
func (l Lister) clusterProfiles(ctx context.Context, as tenant.Identity, from *v1alpha1.ClusterProfileClusters, into clusters) error {
	if _, err := l.served(ctx, clusterprofile.Kind); err != nil {
		return err
	}
	return l.pages(ctx, as, clusterprofile.Resource, &from.Selector, func(client *tenant.Client, options metav1.ListOptions) (string, error) {
		page, err := client.ListPage(ctx, tenant.Ref{Resource: clusterprofile.Resource, Namespace: as.Namespace}, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			profile, err := clusterprofile.Decode(&page.Items[i])
			if err != nil {
				return "", fmt.Errorf("clusterprofile %s: %w", page.Items[i].GetName(), err)
			}
			if err := checkName("clusterprofile", profile.Namespace, profile.Name); err != nil {
				return "", err
			}
			into.add(ofProfile(profile, from.AccessProvider))
		}
		return page.GetContinue(), nil
	})
}

// ofProfile is the cluster of a ClusterProfile.
func ofProfile(profile *inventory.ClusterProfile, accessProvider string) *revision.Cluster {
	return &revision.Cluster{
		Name: profile.Name, Labels: profile.Labels, Annotations: profile.Annotations, UID: profile.UID, Created: profile.CreationTimestamp.Time,
		Unhealthy:  clusterprofile.Unhealthy(profile),
		KubeConfig: &v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: profile.Name, AccessProvider: accessProvider}},
	}
}
