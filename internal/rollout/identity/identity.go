// SPDX-License-Identifier: Apache-2.0

package rollout

// Duplicates are the names of clusters with an identity that another name has, too. An empty identity is not known yet.
func Duplicates(identities map[string]string) map[string]bool {
	names := map[string][]string{}
	for name, identity := range identities {
		if identity != "" {
			names[identity] = append(names[identity], name)
		}
	}
	duplicates := map[string]bool{}
	for _, same := range names {
		if len(same) < 2 {
			continue
		}
		for _, name := range same {
			duplicates[name] = true
		}
	}
	return duplicates
}
