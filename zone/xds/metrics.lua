-- What the listener of a proxy's metrics makes of the answer of the admin interface. In front of this stand:
--   applications  a list of {cluster, host, path, label}: who is asked for further metrics
--   base          a list of selectors, or nil for all: the metrics that a profile has
--   exclude       a list of selectors: those that are left out
--   include       a list of selectors: those that are there nevertheless
-- A selector is {kind, text}, or {"Regex", program}: a list of steps, of which the first is where it begins.
local patience = 2000 -- milliseconds for each application

-- enter adds the step i, and those that it leads to without a character, to the steps that are on.
local function enter(program, on, i, first, last)
  if on.seen[i] then return end
  on.seen[i] = true
  local kind, a, b = unpack(program[i])
  if kind == "end" then
    on.done = true
  elseif kind == "fork" then
    enter(program, on, a, first, last)
    enter(program, on, b, first, last)
  elseif kind == "first" then
    if first then enter(program, on, a, first, last) end
  elseif kind == "last" then
    if last then enter(program, on, a, first, last) end
  elseif kind == "take" then
    on[#on + 1] = i
  end
end

-- matches reports whether an expression matches a part of a name, in time that grows with the name only.
local function matches(program, name)
  local on = {seen = {}}
  for at = 1, #name + 1 do
    local last = at > #name
    enter(program, on, 1, at == 1, last)
    if on.done then return true end
    local after, c = {seen = {}}, string.sub(name, at, at)
    for _, i in ipairs(on) do
      if not last and string.find(program[i][3], c, 1, true) then
        enter(program, after, program[i][2], false, at == #name)
      end
    end
    if after.done then return true end
    on = after
  end
  return false
end

local function any(list, name)
  for _, s in ipairs(list) do
    local kind, text = s[1], s[2]
    if kind == "Exact" and name == text or kind == "Prefix" and string.sub(name, 1, #text) == text
      or kind == "Contains" and string.find(name, text, 1, true) or kind == "Regex" and matches(text, name) then
      return true
    end
  end
  return false
end

local known = {} -- names that were looked at

local function keeps(name)
  if known[name] == nil then
    known[name] = (base == nil or any(base, name)) and not any(exclude, name) or any(include, name)
  end
  return known[name]
end

-- selected returns the families of metrics that are shown. Each begins with a line `# TYPE name kind`.
local function selected(text)
  local mark, out = "\n# TYPE ", {}
  text = "\n" .. text
  local from = string.find(text, mark, 1, true)
  while from do
    local to = string.find(text, mark, from + 1, true)
    if keeps(string.match(text, "[^ \n]*", from + #mark)) then
      out[#out + 1] = string.sub(text, from + 1, to or -1)
    end
    from = to
  end
  return table.concat(out)
end

-- labelled adds a label to each metric.
local function labelled(text, label)
  return (string.gsub("\n" .. text, "\n([%a_:][%w_:]*)({?)", function(name, brace)
    return "\n" .. name .. "{" .. label .. (brace == "{" and "," or "}")
  end))
end

-- asked returns the metrics of an application; nil where it gives none.
local function asked(handle, app)
  local headers, text = handle:httpCall(app.cluster, {
    [":method"] = "GET", [":path"] = app.path, [":authority"] = app.host, accept = "text/plain;version=0.0.4",
  }, nil, patience)
  if headers[":status"] ~= "200" or text == nil then return nil end
  text = string.gsub(text, "# EOF%s*$", "")
  if app.label then text = labelled(text, app.label) end
  return text .. "\n"
end

function envoy_on_response(handle)
  if handle:headers():get(":status") ~= "200" then return end
  local body = handle:body(true)
  local text = body:getBytes(0, body:length())
  if base or #exclude > 0 then text = selected(text) end
  local out, up = {text}, {}
  for _, app in ipairs(applications) do
    local more = asked(handle, app)
    out[#out + 1] = more
    up[#up + 1] = string.format("causeway_application_up{%s} %d\n", app.label or 'application="' .. app.host .. '"', more and 1 or 0)
  end
  if #up > 0 then out[#out + 1] = "# TYPE causeway_application_up gauge\n" .. table.concat(up) end
  text = table.concat(out)
  handle:body(true):setBytes(text) -- what was there before a call is no more
  handle:headers():replace("content-length", tostring(#text))
end
