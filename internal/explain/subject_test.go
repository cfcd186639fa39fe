package explain

import "testing"

func FuzzSubjectsOf(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"main"}]}}`,
		`{"kind":"Deployment","metadata":{"ownerReferences":[{"controller":true}]},"spec":{"template":{}}}`,
		`{"kind":"ReplicaSet","metadata":{"ownerreferences":[{"controller":true}]}}`,
		`{"kind":"CronJob","metadata":null,"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"namespace":"x"}}}}}}`,
		`{"kind":"List","items":[{"kind":"Pod"},{"kind":"PodList","items":[null]}]}`, `null`, `[]`, `{"kind":"Job"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		subjects, err := SubjectsOf(object, "team")
		if err != nil && len(subjects) > 0 {
			t.Errorf("both %d subjects and %v", len(subjects), err)
		}
		for _, s := range subjects {
			if s.pod == nil || s.namespace == "" {
				t.Errorf("%s has no pod or no namespace", s)
			}
		}
	})
}
