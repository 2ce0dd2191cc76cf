-- The health of an object of the mesh, for Argo CD.
local status = obj.status or {}
local ready, stalled
for _, c in ipairs(status.conditions or {}) do
  if c.type == "Ready" then ready = c end
  if c.type == "Stalled" and c.status == "True" then stalled = c end
end
local labels = obj.metadata.labels or {}
if ready == nil and labels["causeway.io/copy"] == "true" then -- servers say nothing of copies
  return { status = "Healthy", message = "a copy of what others wrote" }
end
if ready == nil or status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the server has not seen it yet" }
end
if stalled ~= nil then
  return { status = "Degraded", message = stalled.message }
end
if ready.status == "True" then
  return { status = "Healthy", message = ready.message }
end
return { status = "Progressing", message = ready.message }
