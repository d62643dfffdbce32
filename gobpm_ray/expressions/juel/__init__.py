"""JUEL, the `${...}` expressions of Camunda 7, Flowable and Activiti, run by the closures of the Python sandbox."""
